"""Tightened twins of a request that has candidates: one constraint more, and no candidate is left.

The dominant reason of a twin must name the constraint that was tightened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode

from support.api_client import ApiClient

Pairs: TypeAlias = list[tuple[str, str]]

# Names that exist, and that no world has.
ABSENT_CLASS = "IPV4_ADDRESS"
ABSENT_TRAITS = ("HW_CPU_X86_3DNOW", "HW_CPU_X86_XOP")
UNKNOWN_UUID = "deadbeef-0000-4000-8000-00000000dead"
# More than any provider has, within max_unit and beyond it.
TOO_MUCH = 2_000_000_000
BEYOND_UNIT = 3_000_000_000
_GROUPS_MAX = 40
STAGES = (
    *("class", "unit", "room", "traits", "aggregates", "in_tree"),
    *("root", "groups", "together"),
)


@dataclass(frozen=True)
class Surroundings:
    """What twins need to know of a world."""

    traits: frozenset[str]
    # The traits of each root.
    root_traits: tuple[frozenset[str], ...]
    aggregates: frozenset[str]
    provider_count: int
    # The capacity of all providers together.
    capacity: Mapping[str, int]


@dataclass(frozen=True)
class Twin:
    """A tightened request, and the reason that it must get."""

    # The parameter that was tightened.
    parameter: str
    pairs: Pairs
    stage: str
    group: str | None
    resource_class: str | None
    words: tuple[str, ...]
    # Whether some worlds have candidates in spite of it.
    may_have_candidates: bool = False


def check_twins(api: ApiClient, query: str, world: Surroundings) -> set[str]:
    """Ask all twins of a query that has candidates. Returns the parameters that were tightened."""
    pairs = parse_qsl(query, strict_parsing=True)
    tightened = set()
    for twin in twins(pairs, world):
        text = urlencode(twin.pairs, safe="!:,")
        answer = api.request(
            "GET", f"/allocation_candidates?{text}", headers={"X-Roost-Explain": "1"}
        )
        assert answer.status == 200, answer.body
        if answer.json["allocation_requests"]:
            assert twin.may_have_candidates, text
            continue
        found = api.get(f"/roost/explain?{text}&misses=0").json
        _check_reason(twin, found, answer.headers["X-Roost-Reason"])
        tightened.add(twin.parameter)
    return tightened


def _check_reason(twin: Twin, found: Any, header: str) -> None:
    reason = found["reason"]
    assert found["feasible"] is False
    if twin.may_have_candidates and STAGES.index(reason["stage"]) > STAGES.index(twin.stage):
        # The group still has trees, but none of those that suit the rest. Its funnel shows it.
        assert _narrows(twin, found), (twin, found)
        return
    wanted = (twin.stage, twin.group, twin.resource_class)
    assert (reason["stage"], reason["group"], reason["resource_class"]) == wanted, (twin, reason)
    missing = [word for word in twin.words if word not in reason["text"]]
    assert not missing, (twin, reason)
    assert reason["text"].startswith(header.removesuffix("..."))


def _narrows(twin: Twin, found: Any) -> bool:
    """Whether the tightened stage of the group leaves fewer trees than the stage before it."""
    (funnel,) = (its["funnel"] for its in found["groups"] if its["group"] == twin.group)
    trees = [row["trees"] for row in funnel]
    position = [row["stage"] for row in funnel].index(twin.stage)
    return bool(trees[position] < trees[position - 1])


def twins(pairs: Pairs, world: Surroundings) -> Iterator[Twin]:
    """The twins of a request."""
    suffixes = list(
        dict.fromkeys(
            match[1]
            for name, _ in pairs
            if (match := re.fullmatch(r"(?:resources|required|member_of|in_tree)(.*)", name))
        )
    )
    for suffix in suffixes:
        yield from _group_twins(pairs, suffix, world)
    yield from _root_twins(pairs, world)
    yield from _joint_twins(pairs, suffixes, world)


def _group_twins(pairs: Pairs, suffix: str, world: Surroundings) -> Iterator[Twin]:
    amounts = _amounts(pairs, suffix)
    for name in amounts:
        for stage, amount in (("room", TOO_MUCH), ("unit", BEYOND_UNIT)):
            more = _resources(suffix, {**amounts, name: amount})
            yield Twin(stage, [*pairs, more], stage, suffix, name, (f"{name}:{amount}",))
    if amounts:
        more = _resources(suffix, {**amounts, ABSENT_CLASS: 1})
        yield Twin("resources", [*pairs, more], "class", suffix, ABSENT_CLASS, (ABSENT_CLASS,))
    stage, group = ("traits", suffix) if suffix else ("together", None)
    first, second = ABSENT_TRAITS
    for parameter, value, words in (
        ("required", first, (first,)),
        ("any traits", f"in:{first},{second}", ABSENT_TRAITS),
    ):
        yield Twin(
            parameter, [*pairs, (f"required{suffix}", value)], stage, group, None, tuple(words)
        )
    yield Twin(
        "member_of",
        [*pairs, (f"member_of{suffix}", UNKNOWN_UUID)],
        "aggregates",
        suffix,
        None,
        (UNKNOWN_UUID,),
    )
    yield Twin(
        "in_tree",
        [*pairs, (f"in_tree{suffix}", UNKNOWN_UUID)],
        "in_tree",
        suffix,
        None,
        (UNKNOWN_UUID,),
    )
    if world.aggregates:
        every = ",".join(sorted(world.aggregates))
        yield Twin(
            "not member_of",
            [*pairs, (f"member_of{suffix}", f"!in:{every}")],
            "aggregates",
            suffix,
            None,
            ("outside aggregate",),
            may_have_candidates=True,
        )
    forbidden = sorted(world.traits - _required(pairs, f"required{suffix}"))
    if forbidden:
        yield Twin(
            "forbidden",
            [*pairs, (f"required{suffix}", ",".join(f"!{name}" for name in forbidden))],
            "traits",
            suffix,
            None,
            ("lacks", forbidden[0]),
            may_have_candidates=True,
        )


def _root_twins(pairs: Pairs, world: Surroundings) -> Iterator[Twin]:
    before = [value for name, value in pairs if name == "root_required"]
    rest = [(name, value) for name, value in pairs if name != "root_required"]
    trait = ABSENT_TRAITS[0]
    more = ("root_required", ",".join([*before, trait]))
    yield Twin("root_required", [*rest, more], "root", None, None, (trait,))
    forbidden = sorted(
        frozenset[str]().union(*world.root_traits) - _required(pairs, "root_required")
    )
    if all(traits.intersection(forbidden) for traits in world.root_traits):
        more = ("root_required", ",".join([*before, *(f"!{name}" for name in forbidden)]))
        yield Twin("root forbidden", [*rest, more], "root", None, None, ("lacks",))


def _joint_twins(pairs: Pairs, suffixes: list[str], world: Surroundings) -> Iterator[Twin]:
    unsuffixed = _amounts(pairs, "")
    rest = [(name, value) for name, value in pairs if name != "group_policy"]
    for suffix in filter(None, suffixes):
        amounts = _amounts(pairs, suffix)
        if not amounts:
            continue
        if world.provider_count < _GROUPS_MAX and not amounts.keys() & unsuffixed.keys():
            copies = _copies(pairs, suffix, world.provider_count)
            yield Twin(
                "isolate",
                [*rest, *copies, ("group_policy", "isolate")],
                "together",
                None,
                None,
                ("group_policy=isolate",),
            )
    for suffix in suffixes:
        for name, amount in _amounts(pairs, suffix).items():
            count = world.capacity[name] // amount
            if count < _GROUPS_MAX:
                copies = [(f"resources_T{number}", f"{name}:{amount}") for number in range(count)]
                yield Twin(
                    "room together",
                    [*rest, *copies, ("group_policy", "none")],
                    "together",
                    None,
                    name,
                    (name,),
                )
    suffixed = [suffix for suffix in suffixes if suffix]
    if len(suffixed) > 1 and not any(name == "same_subtree" for name, _ in pairs):
        joined = ",".join(sorted(suffixed))
        yield Twin(
            "same_subtree",
            [*pairs, ("same_subtree", joined)],
            "together",
            None,
            None,
            (f"same_subtree={joined}",),
            may_have_candidates=True,
        )


def _copies(pairs: Pairs, suffix: str, count: int) -> Pairs:
    """More groups like the one with this suffix."""
    own = [
        (match[1], value)
        for name, value in pairs
        if (
            match := re.fullmatch(
                rf"(resources|required|member_of|in_tree){re.escape(suffix)}", name
            )
        )
    ]
    return [(f"{kind}_T{number}", value) for number in range(count) for kind, value in own]


def _amounts(pairs: Pairs, suffix: str) -> dict[str, int]:
    """The resources of a group; its last value counts."""
    values = [value for name, value in pairs if name == f"resources{suffix}"]
    if not values:
        return {}
    pieces = (piece.partition(":") for piece in values[-1].split(","))
    return {name: int(amount) for name, _, amount in pieces}


def _resources(suffix: str, amounts: Mapping[str, int]) -> tuple[str, str]:
    return f"resources{suffix}", ",".join(f"{name}:{amount}" for name, amount in amounts.items())


def _required(pairs: Pairs, parameter: str) -> set[str]:
    """The traits that a parameter requires, or of which it requires one."""
    values = [value.removeprefix("in:") for name, value in pairs if name == parameter]
    return {name for value in values for name in value.split(",") if not name.startswith("!")}
