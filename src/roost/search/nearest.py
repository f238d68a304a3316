"""The careful look at one tree: the provider that comes nearest for each slot, and its lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from operator import itemgetter
from typing import NamedTuple

from roost.model.capacity import is_allowed, remaining
from roost.search.block import Block
from roost.search.checks import RequirementChecks, SetCheck
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.gaps import WHOLE_GAP, ForestGaps, SharingGap, provider_gaps
from roost.search.joint_conditions import Togetherness
from roost.search.lack import Lack, LackRule, LackStage, Miss, UnitRange
from roost.search.lone_trees import LoneTrees
from roost.search.plan import Slot
from roost.search.rules import Rules


class _Nearest(NamedTuple):
    """The provider that comes nearest for a slot."""

    ref: ProviderRef
    # Its aggregates, if it is a sharing provider of another tree; whether it reaches the tree.
    lends_via: frozenset[str] | None = None
    reaches: bool = True


class TreeLook:
    """Looks at single trees of a forest, for one plan."""

    def __init__(self, forest: Forest, rules: Rules, gaps: ForestGaps) -> None:
        self._forest = forest
        self._rules = rules
        self._gaps = gaps
        self._lone_trees = LoneTrees(forest)
        self._togetherness = Togetherness(forest, rules)
        # By tree and requirement: the gap of each provider of the tree.
        self._own_gaps: dict[tuple[TreeRef, int], list[float]] = {}
        # By tree and requirement: the smallest gap, and the provider that has it.
        self._found: dict[tuple[TreeRef, int], tuple[float, _Nearest]] = {}

    def miss(self, tree: TreeRef) -> Miss | None:
        """What the tree lacks; `None` if the tree has a candidate, or if that is not known."""
        slots = self._rules.plan.slots
        by_slot = [
            list(self._slot_lacks(tree, slot, self._nearest(tree, slot.requirement_index)))
            for slot in slots
        ]
        further = [*self._root_lacks(tree), *self._choice_lacks(tree)]
        if not (any(by_slot) or further):
            further += self._togetherness.lacks(self._lone_trees.forest(tree), tree)
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
        ((class_id, _),) = self._rules.plan.requirements[slot.requirement_index].amounts
        having = [
            option
            for option in self._options(tree, slot.requirement_index)
            if self._has_inventory(option[1].ref, class_id)
        ]
        if having:
            return list(self._slot_lacks(tree, slot, min(having, key=itemgetter(0))))
        return [replace(lack, provider=None) for lack in absent]

    def _has_inventory(self, ref: ProviderRef, class_id: int) -> bool:
        inventory = self._forest.blocks[ref.block_number].inventories.get(class_id)
        return inventory is not None and inventory.row_of(ref.provider_index) >= 0

    def _root_lacks(self, tree: TreeRef) -> Iterator[Lack]:
        checks, block = self._gaps.checks, self._forest.blocks[tree.block_number]
        root = int(block.starts[tree.tree_number])
        uuid = block.uuids[root].decode()
        if checks.only_anchor is not None and checks.only_anchor != tree:
            for rule in checks.anchor_rules:
                yield Lack(LackStage.ROOT, rule, provider=uuid)
        for check in _failed(checks.root_traits, int(block.trait_set_numbers[root])):
            yield Lack(LackStage.ROOT, check.rule, provider=uuid, traits=check.names)
        for check in _failed(checks.root_aggregates, int(block.aggregate_set_numbers[root])):
            # They forbid the whole tree to the unsuffixed group.
            yield Lack(LackStage.AGGREGATES, check.rule, "", uuid, aggregates=check.names)

    def _slot_lacks(
        self, tree: TreeRef, slot: Slot, option: tuple[float, _Nearest]
    ) -> Iterator[Lack]:
        """What a provider lacks for a slot of the tree."""
        gap, nearest = option
        if not gap:
            return
        checks = self._gaps.checks.requirements[slot.requirement_index]
        block = self._forest.blocks[nearest.ref.block_number]
        index = nearest.ref.provider_index
        uuid = block.uuids[index].decode()
        # The unsuffixed group has a slot for each of its classes.
        only_class = next(iter(slot.resources)) if not slot.suffix else None
        if not nearest.reaches:
            yield Lack(
                LackStage.AGGREGATES,
                LackRule.REACH,
                slot.suffix,
                uuid,
                next(iter(slot.resources), None),
                aggregates=tuple(sorted(nearest.lends_via or ())),
            )
            return
        yield from self._amount_lacks(slot, nearest.ref)
        for check in _failed(checks.traits, int(block.trait_set_numbers[index])):
            yield Lack(
                LackStage.TRAITS, check.rule, slot.suffix, uuid, only_class, traits=check.names
            )
        for check in self._failed_aggregates(checks, block, index, nearest):
            yield Lack(
                LackStage.AGGREGATES,
                check.rule,
                slot.suffix,
                uuid,
                only_class,
                aggregates=check.names,
            )
        own_tree = TreeRef(nearest.ref.block_number, int(block.tree_numbers[index]))
        if (checks.in_tree is not None and checks.in_tree != own_tree) or (
            checks.excludes_sharing and nearest.lends_via is not None
        ):
            yield Lack(LackStage.IN_TREE, LackRule.IN_TREE, slot.suffix, uuid, only_class)
        if checks.in_subtree is not None and not (
            nearest.ref.block_number == checks.in_subtree.block_number
            and index in block.subtree(checks.in_subtree.provider_index)
            and not (checks.counts_root and nearest.lends_via is not None)
        ):
            yield Lack(LackStage.IN_TREE, LackRule.IN_SUBTREE, slot.suffix, uuid, only_class)

    def _amount_lacks(self, slot: Slot, ref: ProviderRef) -> Iterator[Lack]:
        block = self._forest.blocks[ref.block_number]
        uuid = block.uuids[ref.provider_index].decode()
        amounts = self._rules.plan.requirements[slot.requirement_index].amounts
        # The amounts of a requirement are cut to what columns can hold.
        for (name, amount), (class_id, _) in zip(slot.resources.items(), amounts, strict=True):
            inventory = block.inventories.get(class_id)
            row = -1 if inventory is None else inventory.row_of(ref.provider_index)
            if inventory is None or row < 0:
                yield Lack(LackStage.CLASS, LackRule.INVENTORY, slot.suffix, uuid, name, amount, 0)
                continue
            free = max(0, int(remaining(int(inventory.capacity[row]), int(inventory.used[row]))))
            units = UnitRange(
                int(inventory.min_unit[row]),
                int(inventory.max_unit[row]),
                int(inventory.step_size[row]),
            )
            if not is_allowed(amount, units.min_unit, units.max_unit, units.step_size):
                yield Lack(
                    LackStage.UNIT,
                    LackRule.UNITS,
                    slot.suffix,
                    uuid,
                    name,
                    amount,
                    free,
                    units=units,
                )
            if amount > free:
                yield Lack(
                    LackStage.ROOM,
                    LackRule.ROOM,
                    slot.suffix,
                    uuid,
                    name,
                    amount,
                    free,
                    units=units,
                )

    def _failed_aggregates(
        self, checks: RequirementChecks, block: Block, index: int, nearest: _Nearest
    ) -> list[SetCheck]:
        own = int(block.aggregate_set_numbers[index])
        member_of = _failed(checks.member_of, own)
        not_member_of = _failed(checks.not_member_of, own)
        if checks.counts_root and nearest.lends_via is None:
            root = int(block.starts[block.tree_numbers[index]])
            by_root = _failed(checks.member_of, int(block.aggregate_set_numbers[root]))
            member_of = min(member_of, by_root, key=len)
            # The forbidden aggregates of the root are lacks of the root.
            not_member_of = not_member_of if index != root else []
        return member_of + not_member_of

    def _choice_lacks(self, tree: TreeRef) -> Iterator[Lack]:
        """The trait choices that no nearest provider of the unsuffixed group meets."""
        checks = self._gaps.checks
        for choice in checks.trait_choices:
            if not any(
                self._is_met(tree, requirement_index, choice)
                for requirement_index in checks.unsuffixed
            ):
                yield Lack(LackStage.TOGETHER, LackRule.REQUIRED, group="", traits=choice.names)

    def _is_met(self, tree: TreeRef, requirement_index: int, choice: SetCheck) -> bool:
        """Whether a provider that comes as near as any meets a trait choice."""
        options = list(self._options(tree, requirement_index))
        nearest = int(min(gap for gap, _ in options))
        return any(
            int(gap) == nearest and choice.met[self._trait_set_number(option.ref)]
            for gap, option in options
        )

    def _trait_set_number(self, ref: ProviderRef) -> int:
        return int(self._forest.blocks[ref.block_number].trait_set_numbers[ref.provider_index])

    def _nearest(self, tree: TreeRef, requirement_index: int) -> tuple[float, _Nearest]:
        """The smallest gap, and the provider that has it."""
        found = self._found.get((tree, requirement_index))
        if found is None:
            # Of equal ones the first: providers of the tree come before sharing providers.
            found = min(self._options(tree, requirement_index), key=itemgetter(0))
            self._found[tree, requirement_index] = found
        return found

    def _options(self, tree: TreeRef, requirement_index: int) -> Iterator[tuple[float, _Nearest]]:
        """The providers that could fill a slot, each with its gap."""
        block_number = tree.block_number
        block = self._forest.blocks[block_number]
        begin, end = block.starts[tree.tree_number : tree.tree_number + 2].tolist()
        gaps = self._gaps_in(tree, requirement_index)
        for index, gap in zip(range(begin, end), gaps, strict=True):
            yield gap, _Nearest(ProviderRef(block_number, index))
        reached = self._forest.aggregate_sets[
            int(block.tree_aggregate_set_numbers[tree.tree_number])
        ]
        for member in self._gaps.sharing.members:
            yield from _lent(member, member.gaps[requirement_index], reached)

    def _gaps_in(self, tree: TreeRef, requirement_index: int) -> list[float]:
        found = self._own_gaps.get((tree, requirement_index))
        if found is None:
            checks = self._gaps.checks.requirements[requirement_index]
            block = self._lone_trees.forest(tree).blocks[tree.block_number]
            begin, end = block.starts[tree.tree_number : tree.tree_number + 2].tolist()
            found = provider_gaps(checks, block, tree.block_number)[begin:end].tolist()
            self._own_gaps[tree, requirement_index] = found
        return found


def _lent(
    member: SharingGap, gap: float, reached: frozenset[str]
) -> Iterator[tuple[float, _Nearest]]:
    """A sharing provider as an option of a tree with these aggregates, if it is one."""
    if not reached.isdisjoint(member.aggregates):
        yield gap, _Nearest(member.ref, member.aggregates)
    elif not gap:
        yield WHOLE_GAP, _Nearest(member.ref, member.aggregates, reaches=False)


def _failed(checks: Iterable[SetCheck], set_number: int) -> list[SetCheck]:
    return [check for check in checks if not check.met[set_number]]


def _shortage(lack: Lack) -> float:
    if lack.rule is LackRule.ROOM and lack.wanted:
        return (lack.wanted - (lack.free or 0)) / lack.wanted
    return 1
