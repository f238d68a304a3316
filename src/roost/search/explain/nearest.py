"""The careful look at one tree: the provider that comes nearest for each slot, and its lacks.

If the tree has no candidate, the look finds a `Miss`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from operator import itemgetter
from typing import NamedTuple

from roost.search.candidates.plan import Slot
from roost.search.candidates.rules import Rules
from roost.search.conditions.aggregates import OutOfReach
from roost.search.conditions.condition import WHOLE_GAP, BlockView, NearProvider
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.traits import TraitChoice
from roost.search.explain.gaps import ForestGaps, SharingGap, provider_gaps
from roost.search.explain.joint_conditions import TreeConflicts
from roost.search.explain.lone_trees import LoneTrees
from roost.search.forest.forest import Forest, ProviderRef, TreeRef


@dataclass(frozen=True, slots=True)
class Miss:
    """A tree without candidates, and all that it lacks."""

    tree: TreeRef
    # The uuid of the root.
    root: str
    # How many checks fail. A provider without inventory fails three: class, unit and room.
    failed: int
    # The sum of what is missing of each amount, relative to the amount; 1 for any other check.
    shortage: float
    lacks: tuple[Lack, ...]
    # Which of its alternatives each group takes, by suffix, if the query has some.
    choices: Mapping[str, int] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, float, str]:
        """What comes first: the fewest failed checks."""
        return self.failed, self.shortage, self.root


class _Option(NamedTuple):
    """A provider that could fill a slot."""

    ref: ProviderRef
    # Whether it is a sharing provider of another tree.
    as_sharing: bool = False
    # What it lacks, if it would serve the slot and does not reach the tree.
    reach: OutOfReach | None = None


class TreeLook:
    """Looks at single trees of a forest, for one plan."""

    def __init__(self, forest: Forest, rules: Rules, gaps: ForestGaps) -> None:
        self._forest = forest
        self._rules = rules
        self._gaps = gaps
        self._lone_trees = LoneTrees(forest)
        self._conflicts = TreeConflicts(forest, rules)
        # By tree and requirement: the gap of each provider of the tree.
        self._own_gaps: dict[tuple[TreeRef, int], list[float]] = {}
        # By tree and requirement: the smallest gap, and the provider that has it.
        self._found: dict[tuple[TreeRef, int], tuple[float, _Option]] = {}

    def miss(self, tree: TreeRef) -> Miss | None:
        """What the tree lacks; `None` if the tree has a candidate, or if that is not known."""
        slots = self._rules.plan.slots
        by_slot = [
            list(self._slot_lacks(tree, slot, self._nearest(tree, slot.requirement_index)))
            for slot in slots
        ]
        further = [*self._root_lacks(tree), *self._choice_lacks(tree)]
        if not (any(by_slot) or further):
            further += self._conflicts.lacks(self._lone_trees.forest(tree), tree)
        lacks = [*further, *chain.from_iterable(by_slot)]
        if not lacks:
            return None
        block = self._forest.blocks[tree.block_number]
        return Miss(
            tree,
            block.uuids[int(block.starts[tree.tree_number])].decode(),
            sum(3 if lack.rule is LackRule.INVENTORY else 1 for lack in lacks),
            sum(map(_shortage, lacks)),
            (*further, *chain.from_iterable(map(self._told, repeat(tree), slots, by_slot))),
        )

    def _told(self, tree: TreeRef, slot: Slot, lacks: list[Lack]) -> list[Lack]:
        """The lacks of a slot that tell the most.

        Where the nearest provider has no inventory of the only class, a provider that has some
        tells more, even if it fails more checks. Where no provider has any, nothing else matters.
        """
        absent = [lack for lack in lacks if lack.rule is LackRule.INVENTORY]
        if not absent or len(slot.resources) > 1:
            return lacks
        wanted = self._rules.plan.requirements[slot.requirement_index].wanted
        having = [
            option
            for option in self._options(tree, slot.requirement_index)
            if wanted.has_inventory(self._forest.blocks[option[1].ref.block_number], option[1].ref)
        ]
        if having:
            return list(self._slot_lacks(tree, slot, min(having, key=itemgetter(0))))
        return [replace(lack, provider=None) for lack in absent]

    def _root_lacks(self, tree: TreeRef) -> Iterator[Lack]:
        block = self._forest.blocks[tree.block_number]
        for condition in self._rules.plan.root_conditions:
            yield from condition.lacks(tree, block)

    def _slot_lacks(
        self, tree: TreeRef, slot: Slot, option: tuple[float, _Option]
    ) -> Iterator[Lack]:
        """What a provider lacks for a slot of the tree."""
        gap, nearest = option
        if not gap:
            return
        block_number = nearest.ref.block_number
        first_class = next(iter(slot.resources), None)
        near = NearProvider(
            nearest.ref,
            BlockView(self._forest.blocks[block_number], block_number, nearest.as_sharing),
            slot.suffix,
            # The unsuffixed group has a slot for each of its classes.
            None if slot.suffix else first_class,
            self._forest.root_traits(tree),
        )
        if nearest.reach is not None:
            yield nearest.reach.lack(near, first_class)
            return
        for condition in self._rules.plan.requirements[slot.requirement_index].conditions:
            yield from condition.lacks(near)

    def _choice_lacks(self, tree: TreeRef) -> Iterator[Lack]:
        """The trait choices that no nearest provider of the unsuffixed group meets."""
        for choice in self._gaps.trait_choices:
            if not any(
                self._is_met(tree, requirement_index, choice)
                for requirement_index in self._gaps.unsuffixed
            ):
                yield choice.lack(self._forest.root_traits(tree))

    def _is_met(self, tree: TreeRef, requirement_index: int, choice: TraitChoice) -> bool:
        """Whether a provider that comes as near as any meets a trait choice."""
        options = list(self._options(tree, requirement_index))
        nearest = int(min(gap for gap, _ in options))
        return any(
            int(gap) == nearest and choice.met[self._trait_set_number(option.ref)]
            for gap, option in options
        )

    def _trait_set_number(self, ref: ProviderRef) -> int:
        return int(self._forest.blocks[ref.block_number].trait_set_numbers[ref.provider_index])

    def _nearest(self, tree: TreeRef, requirement_index: int) -> tuple[float, _Option]:
        """The smallest gap, and the provider that has it."""
        found = self._found.get((tree, requirement_index))
        if found is None:
            # Of equal ones the first: providers of the tree come before sharing providers.
            found = min(self._options(tree, requirement_index), key=itemgetter(0))
            self._found[tree, requirement_index] = found
        return found

    def _options(self, tree: TreeRef, requirement_index: int) -> Iterator[tuple[float, _Option]]:
        """The providers that could fill a slot, each with its gap."""
        block_number = tree.block_number
        block = self._forest.blocks[block_number]
        begin, end = block.starts[tree.tree_number : tree.tree_number + 2].tolist()
        gaps = self._gaps_in(tree, requirement_index)
        for index, gap in zip(range(begin, end), gaps, strict=True):
            yield gap, _Option(ProviderRef(block_number, index))
        reached = self._forest.aggregate_sets[
            int(block.tree_aggregate_set_numbers[tree.tree_number])
        ]
        for member in self._gaps.sharing.members:
            yield from _lent(member, member.gaps[requirement_index], reached)

    def _gaps_in(self, tree: TreeRef, requirement_index: int) -> list[float]:
        found = self._own_gaps.get((tree, requirement_index))
        if found is None:
            requirement = self._rules.plan.requirements[requirement_index]
            block = self._lone_trees.forest(tree).blocks[tree.block_number]
            begin, end = block.starts[tree.tree_number : tree.tree_number + 2].tolist()
            view = BlockView(block, tree.block_number)
            found = provider_gaps(requirement, view)[begin:end].tolist()
            self._own_gaps[tree, requirement_index] = found
        return found


def _lent(
    member: SharingGap, gap: float, reached: frozenset[str]
) -> Iterator[tuple[float, _Option]]:
    """A sharing provider as an option of a tree with these aggregates, if it is one."""
    if not reached.isdisjoint(member.aggregates):
        yield gap, _Option(member.ref, as_sharing=True)
    elif not gap:
        yield WHOLE_GAP, _Option(member.ref, as_sharing=True, reach=OutOfReach(member.aggregates))


def _shortage(lack: Lack) -> float:
    if lack.rule is LackRule.ROOM and lack.wanted:
        return (lack.wanted - (lack.free or 0)) / lack.wanted
    return 1
