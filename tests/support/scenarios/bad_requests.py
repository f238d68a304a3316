"""Requests for allocation candidates with one fault each."""

from __future__ import annotations

from dataclasses import replace

from support.scenarios.random_clouds import AGGREGATES, PROVIDERS, TRAITS, Draw, choose
from support.scenarios.requests import (
    FORBIDDEN,
    IN_TREE,
    LIMIT,
    MEMBER_OF,
    REQUIRED,
    ROOT_REQUIRED,
    SAME_SUBTREE,
    SUFFIXES,
    Mishap,
    Parameter,
    Request,
)

UNKNOWN_NAME = Mishap("unknown name", 400, (400, 200), (400, 200), "D11")
HUGE_AMOUNT = Mishap("huge amount", 200, (200,), (200, 500), "D7")
FIRST_IS_BAD = Mishap("the first of two is bad", 400, (400,), (200, 400, 500), "D8")
EARLY = {
    "limit": (LIMIT, "1"),
    "required": (REQUIRED, TRAITS[0]),
    "member_of": (MEMBER_OF, AGGREGATES[0]),
    "group_policy": (SUFFIXES, "none"),
    "in_tree": (IN_TREE, PROVIDERS[0]),
    "root_required": (ROOT_REQUIRED, TRAITS[0]),
    "same_subtree": (SAME_SUBTREE, "1"),
}


def spoilt(draw: Draw, request: Request) -> Request:
    """The request with one random fault."""
    mishap, parameters = choose(draw, ways(request))
    return replace(request, parameters=tuple(parameters), mishap=mishap)


def ways(request: Request) -> list[tuple[Mishap, list[Parameter]]]:
    """All faults that the request can have at its version."""
    minor, suffix = request.query.minor, request.query.groups[0].suffix

    def but(name: str, *values: str) -> list[Parameter]:
        """The parameters, with these values for one of them at the end."""
        kept = [pair for pair in request.parameters if pair[0] != name]
        return kept + [(name, value) for value in values]

    found = [
        (UNKNOWN_NAME, but(f"resources{suffix}", "CUSTOM_NOPE:1")),
        (HUGE_AMOUNT, but(f"resources{suffix}", f"VCPU:{2**63}")),
        (refused("no amount"), but(f"resources{suffix}", "VCPU:0")),
        (refused("unknown parameter"), but("colour", "red")),
    ]
    found += [
        (refused(f"{name} before its time"), but(name, value))
        for name, (since, value) in EARLY.items()
        if minor < since
    ]
    if minor >= LIMIT:
        found.append((FIRST_IS_BAD, but("limit", "abc", "3")))
        found.append((refused("no limit"), but("limit", "0")))
    if minor >= REQUIRED:
        found.append((UNKNOWN_NAME, but(f"required{suffix}", "CUSTOM_NOPE")))
    if minor >= FORBIDDEN:
        conflict = f"{TRAITS[0]},!{TRAITS[0]}"
        found.append((refused("conflicting traits"), but(f"required{suffix}", conflict)))
    if minor >= SUFFIXES:
        found.append((FIRST_IS_BAD, but("group_policy", "foo", "none")))
        if sum(bool(group.suffix) for group in request.query.groups) > 1:
            found.append((refused("no policy"), but("group_policy")))
    if minor >= SAME_SUBTREE:
        found.append((refused("a group on its own"), but("required_ALONE", TRAITS[0])))
        found.append((refused("unknown suffix"), but("same_subtree", "_NOPE")))
    return found


def refused(name: str) -> Mishap:
    return Mishap(name, 400, (400,), (400,))
