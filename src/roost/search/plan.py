"""The plan: a query in terms of one forest, names turned into numbers and tables.

A query falls into parts, each of which one provider serves: every resource class of the
unsuffixed group is a part, and every suffixed group is one. Parts that ask for the same share a
demand, so eight equal groups cost what one costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import NamedTuple, TypeAlias

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.search.building import CAPACITY_MAX
from roost.search.forest import Forest, TreeRef
from roost.search.rows import BoolColumn

# For each set of traits or aggregates whether it will do; nothing: every set will.
Table: TypeAlias = BoolColumn | None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a group demands of a provider besides room."""

    # By number of the provider's trait set.
    traits: Table
    # By number of an aggregate set: in one aggregate of each positive member_of; in none of
    # the forbidden ones.
    member_of: Table
    not_member_of: Table
    # The tree in which the provider must be.
    home: TreeRef | None
    # The unsuffixed group: its tree's root may be the member instead, or spoil it.
    spanning: bool


class Need(NamedTuple):
    """An amount of one resource class."""

    class_id: int
    amount: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What one provider must give and be."""

    needs: tuple[Need, ...]
    conditions: Conditions
    # The suffixes of the groups that have it.
    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One provider to be chosen: for a suffixed group, or for a class of the unsuffixed one."""

    suffix: str
    # Which of the plan's demands it has.
    demand: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that the search needs to know of a query."""

    query: CandidateQuery
    demands: tuple[Demand, ...]
    parts: tuple[Part, ...]
    # By number of a root's trait set.
    root_traits: Table
    # By number of a root's aggregate set: roots under which the unsuffixed group may be served.
    root_aggregates: Table
    # The only tree that may be an anchor.
    anchor: TreeRef | None
    # Required items of the unsuffixed group, which its providers must have together: for each
    # a table by number of a trait set.
    items: tuple[BoolColumn, ...]
    # The numbers of the parts that isolate keeps apart, and those under each same_subtree.
    isolated: tuple[int, ...]
    subtrees: tuple[tuple[int, ...], ...]

    @property
    def unsuffixed(self) -> tuple[int, ...]:
        """The numbers of the parts of the unsuffixed group."""
        return tuple(number for number, part in enumerate(self.parts) if not part.suffix)


def make_plan(forest: Forest, query: CandidateQuery) -> Plan | None:
    """The plan for a query all of whose names exist; nothing if it is clear that nobody fits."""
    trees = {
        group.in_tree: forest.find_tree(group.in_tree)
        for group in query.groups
        if group.in_tree is not None
    }
    homes = [_home(trees, group) for group in query.groups]
    if any(home is None for home in homes) or any(map(_asks_nothing, query.groups)):
        return None
    drafts: dict[tuple[object, ...], _Draft] = {}
    parts: list[Part] = []
    for group, home in zip(query.groups, homes, strict=True):
        assert home is not None
        for resources in _divided(group):
            key = (tuple(resources.items()), group.traits, group.aggregates, home, not group.suffix)
            draft = drafts.setdefault(key, _Draft(len(drafts), group, home[0], resources))
            draft.suffixes.append(group.suffix)
            parts.append(Part(group.suffix, draft.number, resources))
    plain = next((group for group in query.groups if not group.suffix), None)
    suffixes = {part.suffix: number for number, part in enumerate(parts) if part.suffix}
    return Plan(
        query=query,
        demands=tuple(draft.demand(forest) for draft in drafts.values()),
        parts=tuple(parts),
        root_traits=_trait_table(forest, query.root_required, with_required=True),
        root_aggregates=None if plain is None else _forbidden_table(forest, plain.aggregates),
        anchor=None if plain is None or plain.in_tree is None else trees[plain.in_tree],
        items=() if plain is None else tuple(_items(forest, plain.traits)),
        isolated=tuple(suffixes.values()) if query.isolate and len(suffixes) > 1 else (),
        subtrees=tuple(
            tuple(sorted(suffixes[suffix] for suffix in together))
            for together in dict.fromkeys(query.same_subtrees)
            if len(together) > 1
        ),
    )


@dataclass(frozen=True, slots=True)
class _Draft:
    """A demand before it is known which groups have it."""

    number: int
    group: RequestGroup
    home: TreeRef | None
    resources: Mapping[str, int]
    suffixes: list[str] = field(default_factory=list)

    def demand(self, forest: Forest) -> Demand:
        return Demand(
            _needs(forest, self.resources),
            _conditions(forest, self.group, self.home),
            tuple(self.suffixes),
        )


def _asks_nothing(group: RequestGroup) -> bool:
    """Whether it is a group that nobody satisfies, since it names nothing positive."""
    has_positive = group.traits.required or group.traits.any_of or group.aggregates.any_of
    return not group.resources and not has_positive


def _home(trees: Mapping[str, TreeRef | None], group: RequestGroup) -> tuple[TreeRef | None] | None:
    """The tree to which the group is bound, if it is; nothing at all if there is no such tree."""
    if group.in_tree is None:
        return (None,)
    found = trees[group.in_tree]
    if found is None:
        return None
    # A group without resources is not bound by its in_tree, as long as there is such a tree.
    return (found if group.resources else None,)


def _divided(group: RequestGroup) -> list[dict[str, int]]:
    """The resources of each part of the group."""
    if group.suffix:
        return [dict(group.resources)]
    return [{name: amount} for name, amount in group.resources.items()]


def _needs(forest: Forest, resources: Mapping[str, int]) -> tuple[Need, ...]:
    # An amount beyond every capacity stays beyond it, but fits the columns.
    return tuple(
        Need(forest.vocabulary.class_ids[name], min(amount, CAPACITY_MAX + 1))
        for name, amount in resources.items()
    )


def _conditions(forest: Forest, group: RequestGroup, home: TreeRef | None) -> Conditions:
    spanning = not group.suffix
    return Conditions(
        # What the unsuffixed group requires, its providers need to have together only.
        traits=_trait_table(forest, group.traits, with_required=not spanning),
        member_of=_member_table(forest, group.aggregates),
        not_member_of=_forbidden_table(forest, group.aggregates),
        home=home,
        spanning=spanning,
    )


def _items(forest: Forest, wanted: TraitFilter) -> Iterator[BoolColumn]:
    """A table for each thing required: one trait, or one of several."""
    ids = forest.vocabulary.trait_ids
    for names in dict.fromkeys(chain(zip(wanted.required, strict=True), wanted.any_of)):
        yield forest.trait_sets.with_any(ids[name] for name in names)


def _trait_table(forest: Forest, wanted: TraitFilter, *, with_required: bool) -> Table:
    ids = forest.vocabulary.trait_ids
    forbidden = (
        [~forest.trait_sets.with_any(ids[name] for name in wanted.forbidden)]
        if wanted.forbidden
        else []
    )
    return _all_of(chain(_items(forest, wanted) if with_required else (), forbidden))


def _member_table(forest: Forest, wanted: AggregateFilter) -> Table:
    return _all_of(forest.aggregate_sets.with_any(uuids) for uuids in dict.fromkeys(wanted.any_of))


def _forbidden_table(forest: Forest, wanted: AggregateFilter) -> Table:
    if not wanted.forbidden:
        return None
    return ~forest.aggregate_sets.with_any(wanted.forbidden)


def _all_of(tables: Iterable[BoolColumn]) -> Table:
    """What is in all of the tables, one of which is held at a time."""
    return reduce(_both, tables, None)


def _both(first: Table, second: BoolColumn) -> BoolColumn:
    if first is None:
        return second
    # A set that was seen between two of the tables is in none of the blocks that are searched.
    shortest = min(len(first), len(second))
    both: BoolColumn = first[:shortest] & second[:shortest]
    return both
