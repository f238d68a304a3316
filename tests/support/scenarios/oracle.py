"""An oracle that finds allocation candidates by exhaustive search, from the rules alone.

The oracle shares no code with the service. So both agree only where both follow the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

SHARING = "MISC_SHARES_VIA_AGGREGATE"
# Minor versions that change the answer.
SUMMARY_TRAITS = 17
ALL_CLASSES = 27
NESTED = 29
MAPPINGS = 34

# Provider, resource class, amount.
Take: TypeAlias = tuple[str, str, int]
# By uuid, as in the answer; traits are sorted.
Summaries: TypeAlias = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Inventory:
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2_147_483_647
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclass(frozen=True)
class Provider:
    parent: str | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def sharing(self) -> bool:
        return SHARING in self.traits

    def has_room(self, name: str, amount: int) -> bool:
        """Whether one group may allocate this amount."""
        inventory = self.inventories.get(name)
        if inventory is None:
            return False
        return (
            inventory.min_unit <= amount
            and amount % inventory.step_size == 0
            and self.bears(name, amount)
        )

    def bears(self, name: str, amount: int) -> bool:
        """Whether all groups together may allocate this amount."""
        inventory = self.inventories[name]
        return (
            self.used.get(name, 0) + amount <= inventory.capacity and amount <= inventory.max_unit
        )


@dataclass(frozen=True)
class World:
    """All providers by their uuids."""

    providers: Mapping[str, Provider]

    def lineage(self, uuid: str) -> list[str]:
        """The provider itself, its parent, and so on up to the root."""
        parent = self.providers[uuid].parent
        return [uuid] if parent is None else [uuid, *self.lineage(parent)]

    def root(self, uuid: str) -> str:
        return self.lineage(uuid)[-1]

    def roots(self) -> list[str]:
        return [uuid for uuid, provider in self.providers.items() if provider.parent is None]

    def anchors(self, uuid: str) -> set[str]:
        """The roots of the trees that the provider is in or reaches."""
        provider = self.providers[uuid]
        found = {self.root(uuid)}
        if provider.sharing:
            found |= {
                self.root(other)
                for other, its in self.providers.items()
                if its.aggregates & provider.aggregates
            }
        return found

    def under(self, root: str) -> list[str]:
        """The providers that the root anchors."""
        return [uuid for uuid in self.providers if root in self.anchors(uuid)]


@dataclass(frozen=True)
class Group:
    suffix: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)
    # At least one trait of each set.
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    # At least one aggregate of each set.
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None
    # Only `GET /roost/candidates` has these.
    in_subtree: str | None = None
    alternatives: tuple[Mapping[str, int], ...] = ()


@dataclass(frozen=True)
class Query:
    # The minor version of the request.
    minor: int
    groups: tuple[Group, ...]
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtrees: tuple[frozenset[str], ...] = ()
    # "none", "isolate", or not given.
    policy: str | None = None
    limit: int | None = None
    # Only `GET /roost/candidates` has these: one trait of each set, and groups kept apart.
    root_any: tuple[frozenset[str], ...] = ()
    isolated_sets: tuple[frozenset[str], ...] = ()

    @property
    def unsuffixed(self) -> Group | None:
        return next((group for group in self.groups if not group.suffix), None)


@dataclass(frozen=True)
class Solution:
    """One way to satisfy one group."""

    suffix: str
    providers: frozenset[str]
    takes: tuple[Take, ...] = ()


@dataclass(frozen=True)
class Candidate:
    allocations: frozenset[Take]
    mappings: frozenset[tuple[str, frozenset[str]]] = frozenset()

    @property
    def givers(self) -> set[str]:
        return {provider for provider, _, _ in self.allocations}


def candidates(world: World, query: Query) -> set[Candidate]:
    """All candidates; the limit of the query does not count."""
    found = {
        candidate
        for root in world.roots()
        if passes(world.providers[root], query)
        for candidate in candidates_under(world, query, root)
    }
    if query.minor < NESTED:
        found = {candidate for candidate in found if one_giver_a_tree(world, candidate)}
    return found


def passes(root: Provider, query: Query) -> bool:
    """Whether the root may be an anchor."""
    return (
        query.root_required <= root.traits
        and not query.root_forbidden & root.traits
        and all(item & root.traits for item in query.root_any)
    )


def candidates_under(world: World, query: Query, root: str) -> Iterator[Candidate]:
    for combination in combinations_under(world, query, root):
        yield candidate_of(combination)


def candidate_of(combination: tuple[Solution, ...]) -> Candidate:
    return Candidate(
        add_up(take for solution in combination for take in solution.takes),
        frozenset((solution.suffix, solution.providers) for solution in combination),
    )


def combinations_under(world: World, query: Query, root: str) -> Iterator[tuple[Solution, ...]]:
    """All choices of a solution for each group under one anchor."""
    under = world.under(root)
    choices = [list(solutions(world, group, root, under)) for group in query.groups]
    for combination in product(*choices):
        summed = add_up(take for solution in combination for take in solution.takes)
        if (
            (query.policy != "isolate" or isolated(combination))
            and all(isolated(combination, suffixes) for suffixes in query.isolated_sets)
            and all(in_subtree(world, combination, suffixes) for suffixes in query.same_subtrees)
            and all(world.providers[giver].bears(name, total) for giver, name, total in summed)
        ):
            yield combination


def solutions(world: World, group: Group, root: str, under: list[str]) -> Iterator[Solution]:
    """All solutions of one group under one anchor."""
    if group.in_tree is not None and group.in_tree not in world.providers:
        return
    if group.suffix:
        for uuid in under:
            if suits(world, group, uuid):
                takes = tuple((uuid, name, amount) for name, amount in group.resources.items())
                yield Solution(group.suffix, frozenset([uuid]), takes)
        return
    givers = [
        [
            uuid
            for uuid in under
            if world.providers[uuid].has_room(name, amount) and may_give(world, group, root, uuid)
        ]
        for name, amount in group.resources.items()
    ]
    for chosen in product(*givers):
        together = frozenset().union(*(world.providers[uuid].traits for uuid in chosen))
        if traits_suit(group, together):
            takes = tuple(
                (uuid, name, amount)
                for uuid, (name, amount) in zip(chosen, group.resources.items(), strict=True)
            )
            yield Solution("", frozenset(chosen), takes)


def suits(world: World, group: Group, uuid: str) -> bool:
    """Whether the provider alone satisfies a suffixed group."""
    provider = world.providers[uuid]
    if not group.resources:
        if not group.required and not group.member_of and group.in_subtree is None:
            return False
    elif group.in_tree is not None and world.root(uuid) != world.root(group.in_tree):
        return False
    return (
        is_below(world, group, uuid)
        and all(provider.has_room(name, amount) for name, amount in group.resources.items())
        and traits_suit(group, provider.traits)
        and in_aggregates(group, provider)
        and not group.not_member_of & provider.aggregates
    )


def may_give(world: World, group: Group, root: str, uuid: str) -> bool:
    """Whether the provider may serve the unsuffixed group under this anchor."""
    provider, anchor = world.providers[uuid], world.providers[root]
    own_tree = world.root(uuid) == root
    if group.in_tree is not None and not (own_tree and world.root(group.in_tree) == root):
        return False
    if group.in_subtree is not None and not (own_tree and is_below(world, group, uuid)):
        return False
    return (
        in_aggregates(group, provider) or (own_tree and in_aggregates(group, anchor))
    ) and not group.not_member_of & (provider.aggregates | anchor.aggregates)


def is_below(world: World, group: Group, uuid: str) -> bool:
    """Whether the provider is in the subtree of the group."""
    return group.in_subtree is None or group.in_subtree in world.lineage(uuid)


def in_aggregates(group: Group, provider: Provider) -> bool:
    return all(asked & provider.aggregates for asked in group.member_of)


def traits_suit(group: Group, traits: frozenset[str]) -> bool:
    return all(item & traits for item in group.required) and not group.forbidden & traits


def add_up(takes: Iterable[Take]) -> frozenset[Take]:
    totals: dict[tuple[str, str], int] = {}
    for provider, name, amount in takes:
        totals[provider, name] = totals.get((provider, name), 0) + amount
    return frozenset((provider, name, total) for (provider, name), total in totals.items())


def isolated(combination: Iterable[Solution], suffixes: frozenset[str] | None = None) -> bool:
    """Whether no two of these groups, or of all suffixed ones, use the same provider."""
    used = [
        uuid
        for solution in combination
        if solution.suffix and (suffixes is None or solution.suffix in suffixes)
        for uuid in solution.providers
    ]
    return len(used) == len(set(used))


def in_subtree(world: World, combination: Iterable[Solution], suffixes: frozenset[str]) -> bool:
    """Whether one provider of these groups is an ancestor of all the rest, or the only one."""
    mapped = {
        uuid
        for solution in combination
        if solution.suffix in suffixes
        for uuid in solution.providers
    }
    return any(all(top in world.lineage(uuid) for uuid in mapped) for top in mapped)


def one_giver_a_tree(world: World, candidate: Candidate) -> bool:
    trees = [world.root(giver) for giver in candidate.givers]
    return len(trees) == len(set(trees))


def summaries(world: World, query: Query, returned: Iterable[Candidate]) -> Summaries:
    """The summaries that belong to the candidates that were returned."""
    shown = {giver for candidate in returned for giver in candidate.givers}
    if query.minor >= NESTED:
        trees = {world.root(giver) for giver in shown}
        shown = {uuid for uuid in world.providers if world.root(uuid) in trees}
    return {uuid: summary(world, query, uuid) for uuid in shown}


def summary(world: World, query: Query, uuid: str) -> dict[str, Any]:
    provider = world.providers[uuid]
    asked = {name for group in query.groups for name in group.resources}
    shown: dict[str, Any] = {
        "resources": {
            name: {"capacity": inventory.capacity, "used": provider.used.get(name, 0)}
            for name, inventory in provider.inventories.items()
            if query.minor >= ALL_CLASSES or name in asked
        }
    }
    if query.minor >= SUMMARY_TRAITS:
        shown["traits"] = sorted(provider.traits)
    if query.minor >= NESTED:
        shown["parent_provider_uuid"] = provider.parent
        shown["root_provider_uuid"] = world.root(uuid)
    return shown
