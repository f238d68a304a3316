"""The world that a seed document draws, and requests to it in the words of the document.

Tests list candidates as the documents do: `1. CN1 (VCPU) + NIC1_1 (SRIOV_NET_VF:2)`. A class
without an amount stands for the requested amount. A provider without parentheses has no
allocation. Mappings may follow in braces: `{''=CN1 1=NIC1_1}`. Without braces, all providers are
mapped to the group without suffix.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pprint import pformat
from typing import Any

from roost.demo.load import load_worlds
from roost.demo.world import ProviderSpec, World
from roost.model.inventory import Inventory
from roost.store.database import Database
from support.api_client import Answer, ApiClient
from support.worlds.tightened_twins import Surroundings, check_twins

LATEST = "1.39"

Resources = Mapping[str, int]


@dataclass(frozen=True)
class Candidate:
    """The allocations and the mappings of a candidate."""

    allocations: Mapping[str, Resources]
    mappings: Mapping[str, Sequence[str]]

    def text(self, minor: int) -> str:
        """The candidate in one line, as an answer of this version shows it."""
        words = [f"{name}[{_joined(taken)}]" for name, taken in sorted(self.allocations.items())]
        if minor >= 34:
            mapped = ((suffix or "''", names) for suffix, names in self.mappings.items())
            groups = " ".join(f"{key}={'+'.join(sorted(names))}" for key, names in sorted(mapped))
            words.append(f"{{{groups}}}")
        return " ".join(words)


@dataclass(frozen=True)
class SeedWorld:
    """The world of one drawing, alone in its database."""

    api: ApiClient
    world: World

    def get(self, request: str, version: str = LATEST) -> Answer:
        """The answer to a query, which may span lines and may have uuids as in `<CN1 uuid>`."""
        return self.api.at(version).get(f"/allocation_candidates?{self.query(request)}")

    def body(self, request: str, version: str = LATEST) -> Any:
        """The body of the answer, with the drawn names in place of their uuids."""
        answer = self.get(request, version)
        assert answer.status == 200, (version, answer.body)
        text = answer.body.decode()
        for name in self._specs:
            text = text.replace(self.world.uuid(name), name)
        return json.loads(text)

    def refusal(self, request: str, version: str = LATEST) -> str:
        """The sentence that refuses the query."""
        answer = self.get(request, version)
        assert answer.status == 400, answer.body
        return answer.detail

    def check(
        self, request: str, listed: str, *, trees: str, since: str, until: str = LATEST
    ) -> None:
        """Ask in all these versions: the answer has the listed candidates and all their summaries.

        `trees` are the roots of the trees that the summaries show from 1.29 on.
        """
        asked = _asked(self.query(request))
        expected = self.listed(request, listed)
        shown = [name for name in self._specs if self._root(name) in trees.split()]
        assert self._summarized(expected, 29) == shown, "the test forgets a tree"
        for minor in range(_minor(since), _minor(until) + 1):
            self._check_whole(request, asked, expected, minor)
            if minor >= 16:
                self._check_limited(request, asked, expected, minor)
        if expected and until == LATEST:
            check_twins(self.api, self.query(request), self.surroundings)

    def listed(self, request: str, listed: str) -> list[Candidate]:
        """The candidates of a numbered list."""
        asked = _asked(self.query(request))
        return [_candidate(item, asked) for item in _items(listed)]

    def drawn(self, line: str, mappings: str) -> str:
        """A candidate in one line, of one in the notation of the lists with names of the API."""
        text = f"{line} {{{mappings}}}".replace(self.world.full_name(""), "")
        return _candidate(text, {}).text(_minor(LATEST))

    @cached_property
    def surroundings(self) -> Surroundings:
        """What the tightened twins of a request need to know of the world."""
        specs = self.world.providers
        capacity: Counter[str] = Counter()
        for inventory in (inventory for spec in specs for inventory in spec.inventories):
            capacity[inventory.resource_class] += int(inventory.capacity)
        return Surroundings(
            traits=frozenset(name for spec in specs for name in spec.traits),
            root_traits=tuple(frozenset(spec.traits) for spec in specs if spec.parent is None),
            aggregates=frozenset(
                self.world.uuid(name) for spec in specs for name in spec.aggregates
            ),
            provider_count=len(specs),
            capacity=capacity,
        )

    def check_none(self, request: str, *, since: str, until: str = LATEST) -> None:
        """Ask in all these versions: the answer has no candidates and no summaries."""
        self.check(request, "", trees="", since=since, until=until)

    def _check_whole(
        self, request: str, asked: Resources, expected: list[Candidate], minor: int
    ) -> None:
        found, summaries = self._ask(request, minor)
        wanted = Counter(candidate.text(minor) for candidate in expected)
        shown = Counter(candidate.text(minor) for candidate in found)
        _same("candidates", minor, sorted(shown), sorted(wanted))
        # Below 1.34, candidates that differ only in mappings look alike. An answer may have such a
        # candidate once, or once for each mapping.
        assert shown <= wanted, f"a candidate came twice at 1.{minor}"
        _same("summaries", minor, summaries, self._summaries(expected, asked, minor))

    def _check_limited(
        self, request: str, asked: Resources, expected: list[Candidate], minor: int
    ) -> None:
        wanted = {candidate.text(minor) for candidate in expected}
        for limit in (1, 2):
            found, summaries = self._ask(f"{request}&limit={limit}", minor)
            assert min(limit, len(wanted)) <= len(found) <= min(limit, len(expected)), minor
            assert {candidate.text(minor) for candidate in found} <= wanted, minor
            # The summaries belong to the candidates within the limit.
            # (Below 1.29, the reference shows more.)
            _same("summaries", minor, summaries, self._summaries(found, asked, minor))

    def _ask(self, request: str, minor: int) -> tuple[list[Candidate], Any]:
        """The candidates, and the summaries."""
        body = self.body(request, f"1.{minor}")
        assert body.keys() == {"allocation_requests", "provider_summaries"}
        for summary in body["provider_summaries"].values():
            if "traits" in summary:
                summary["traits"].sort()
        found = [_read(entry, minor) for entry in body["allocation_requests"]]
        return found, body["provider_summaries"]

    def _summaries(self, candidates: Iterable[Candidate], asked: Resources, minor: int) -> Any:
        """The complete summaries of the candidates in this version."""
        return {
            name: self._summary(name, asked, minor) for name in self._summarized(candidates, minor)
        }

    def _summarized(self, candidates: Iterable[Candidate], minor: int) -> list[str]:
        """The providers in the summaries: those with allocations, from 1.29 on with their trees."""
        giving = {name for candidate in candidates for name in candidate.allocations}
        if minor < 29:
            return [name for name in self._specs if name in giving]
        roots = {self._root(name) for name in giving}
        return [name for name in self._specs if self._root(name) in roots]

    def _summary(self, name: str, asked: Resources, minor: int) -> Any:
        spec = self._specs[name]
        summary: dict[str, Any] = {
            "resources": {
                inventory.resource_class: {"capacity": int(inventory.capacity), "used": 0}
                for inventory in spec.inventories
                if minor >= 27 or inventory.resource_class in asked
            }
        }
        if minor >= 17:
            summary["traits"] = sorted(spec.traits)
        if minor >= 29:
            summary["parent_provider_uuid"] = spec.parent
            summary["root_provider_uuid"] = self._root(name)
        return summary

    def _root(self, name: str) -> str:
        parent = self._specs[name].parent
        return name if parent is None else self._root(parent)

    def query(self, request: str) -> str:
        """The query string of a request."""
        named = re.sub(r"<(\S+) uuid>", lambda match: self.world.uuid(match[1]), request)
        return "".join(named.split())

    @cached_property
    def _specs(self) -> dict[str, ProviderSpec]:
        return {spec.name: spec for spec in self.world.providers}


def totals(**amounts: int) -> tuple[Inventory, ...]:
    """Inventories of which a drawing tells the total only.

    >>> [inventory.total for inventory in totals(VCPU=8, MEMORY_MB=1024)]
    [8, 1024]
    """
    return tuple(Inventory(name, total) for name, total in amounts.items())


def load_seed(database: Database, api: ApiClient, world: World) -> SeedWorld:
    """Load the world of a drawing into an empty database."""
    database.write(load_worlds, [world])
    return SeedWorld(api, world)


def _same(what: str, minor: int, found: object, wanted: object) -> None:
    assert found == wanted, f"{what} at 1.{minor}:\n{pformat(found)}\nwanted:\n{pformat(wanted)}"


def _read(entry: Any, minor: int) -> Candidate:
    """The candidate in an allocation request of this version."""
    assert entry.keys() == ({"allocations", "mappings"} if minor >= 34 else {"allocations"})
    allocations = entry["allocations"]
    if minor < 12:
        assert all(item.keys() == {"resource_provider", "resources"} for item in allocations)
        pairs = [(item["resource_provider"], item["resources"]) for item in allocations]
        assert all(provider.keys() == {"uuid"} for provider, _ in pairs)
        taken = {provider["uuid"]: resources for provider, resources in pairs}
        assert len(taken) == len(pairs), "a provider came twice"
    else:
        assert all(item.keys() == {"resources"} for item in allocations.values())
        taken = {name: item["resources"] for name, item in allocations.items()}
    return Candidate(taken, entry.get("mappings", {}))


def _minor(version: str) -> int:
    return int(version.removeprefix("1."))


def _joined(resources: Resources) -> str:
    return ",".join(f"{name}:{amount}" for name, amount in sorted(resources.items()))


def _asked(query: str) -> Resources:
    """The classes in the query, with their amounts; 0 if the amounts differ between groups."""
    amounts: dict[str, set[int]] = {}
    for pieces in re.findall(r"(?:^|&)resources[^=&]*=([^&]*)", query):
        for piece in pieces.split(","):
            name, _, amount = piece.partition(":")
            amounts.setdefault(name, set()).add(int(amount))
    return {name: found.pop() if len(found) == 1 else 0 for name, found in amounts.items()}


def _items(listed: str) -> list[str]:
    """The items of a numbered list, each in one line."""
    _, *items = re.split(r"^ *\d+\. ", listed, flags=re.MULTILINE)
    return [" ".join(item.split()) for item in items]


def _candidate(item: str, asked: Resources) -> Candidate:
    drawn, _, braces = item.partition(" {")
    allocations: dict[str, Resources] = {}
    for part in drawn.split(" + "):
        name, _, parentheses = part.partition(" (")
        if parentheses:
            words = parentheses.removesuffix(")").split(", ")
            allocations[name] = dict(_amount(word, asked) for word in words)
    if not braces:
        return Candidate(allocations, {"": tuple(allocations)})
    groups = (group.split("=") for group in braces.removesuffix("}").split())
    mappings = {suffix.strip("'"): tuple(names.split("+")) for suffix, names in groups}
    return Candidate(allocations, mappings)


def _amount(word: str, asked: Resources) -> tuple[str, int]:
    name, _, amount = word.partition(":")
    found = int(amount) if amount else asked[name]
    assert found > 0, f"the list does not say how much {name}"
    return name, found
