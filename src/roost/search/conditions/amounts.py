"""The condition of `resources`: inventory of each class, units that allow the amount, and room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from roost.model.candidate_query import edits
from roost.model.candidate_query.change import DROP_CLASS, QueryChange, change_amount, place
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.capacity import free_amount, is_allowed, is_within, keeps_units
from roost.model.text import listed
from roost.search.conditions.condition import (
    SHORTAGE_UNIT,
    WHOLE_GAP,
    BlockView,
    Condition,
    NearProvider,
)
from roost.search.conditions.lack import Lack, LackRule, UnitRange
from roost.search.conditions.stages import RESOURCE_STAGES, GroupStage
from roost.search.forest.block import NO_INDEXES, Block, InventoryColumns
from roost.search.forest.block_building import CAPACITY_MAX
from roost.search.forest.forest import Forest, ProviderRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn, IntColumn

# A provider without inventory of a class fails three stages: class, unit and room.
_NO_INVENTORY_GAP = 3 + SHORTAGE_UNIT


class ResourceAmount(NamedTuple):
    """An amount of one resource class."""

    class_id: int
    # Cut to a number that fits into the columns and is still above every capacity.
    amount: int


def takes_several(group: RequestGroup) -> bool:
    """Whether several providers serve the group, one for each class."""
    return not group.suffix and len(group.resources) > 1


@dataclass(frozen=True, slots=True)
class WantedResources(Condition):
    """The amounts that the provider of a slot must give. It finds providers by their inventory."""

    # By the name of the class.
    resources: tuple[tuple[str, int], ...]
    # The same by its id.
    amounts: tuple[ResourceAmount, ...]
    # Whether no provider counts, because the group asks for none.
    is_void: bool = False

    stages = RESOURCE_STAGES
    not_asked = "the query asks no resources"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self:
        """The condition of `resources`, if one provider gives all of them."""
        return cls.of_resources(forest, group.resources)

    @classmethod
    def of_resources(
        cls, forest: Forest, resources: Mapping[str, int], *, is_void: bool = False
    ) -> Self:
        """The condition of the resources of one slot; without any, all providers meet it."""
        ids = forest.vocabulary.class_ids
        amounts = [
            ResourceAmount(ids[name], min(amount, CAPACITY_MAX + 1))
            for name, amount in resources.items()
        ]
        return cls(tuple(resources.items()), tuple(amounts), is_void)

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        return bool(group.resources)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        if not group.resources:
            return
        word = "or" if takes_several(group) else "and"
        have = "has" if singular else "have"
        if stage is GroupStage.CLASS:
            yield f"{have} inventory of {listed(group.resources, word)}"
            return
        amounts = listed([f"{name}:{amount}" for name, amount in group.resources.items()], word)
        if stage is GroupStage.ROOM:
            yield f"{have} room for {amounts}"
        else:
            allow = "allows" if singular else "allow"
            yield f"{allow} {amounts} by min_unit, max_unit and step_size"

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        if group.resources:
            yield "resources", _written(group.resources)
        for resources in group.alternatives:
            yield "or_resources", _written(resources)

    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        """The providers with room: all that have it, whatever providers are given."""
        return self.passing_at(GroupStage.ROOM, view.block)

    def passing_at(self, stage: GroupStage, block: Block) -> IndexColumn:
        """The providers that pass a stage for each class, and with it the stages before."""
        found: IndexColumn | None = None
        for class_id, amount in self.amounts:
            its = _passing(stage, block.inventories.get(class_id), amount)
            found = its if found is None else in_both(found, its, len(block))
            if not len(found):
                break
        if found is None:
            return NO_INDEXES if self.is_void else np.arange(len(block), dtype=np.int32)
        return found

    def passing_class(self, class_id: int, stage: GroupStage, block: Block) -> IndexColumn:
        """The providers that pass all stages before this one, and this one for one class only."""
        amount, position = dict(self.amounts)[class_id], RESOURCE_STAGES.index(stage)
        passing = _passing(stage, block.inventories.get(class_id), amount)
        if not position or not len(passing):
            return passing
        return in_both(self.passing_at(RESOURCE_STAGES[position - 1], block), passing, len(block))

    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        for class_id, amount in self.amounts:
            inventory = view.block.inventories.get(class_id)
            if inventory is None:
                return GroupStage.CLASS
            if inventory.room_max < amount:
                return GroupStage.ROOM
        return None

    def gaps(self, view: BlockView) -> FloatColumn:
        gaps: FloatColumn = np.zeros(len(view.block))
        for class_id, amount in self.amounts:
            gaps += _amount_gaps(view.block, class_id, amount)
        return gaps

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        for (name, amount), (class_id, _) in zip(self.resources, self.amounts, strict=True):
            inventory = near.view.block.inventories.get(class_id)
            row = -1 if inventory is None else inventory.row_of(near.ref.provider_index)
            about: dict[str, Any] = {"resource_class": name, "wanted": amount}
            if inventory is None or row < 0:
                yield near.lack(self, GroupStage.CLASS, LackRule.INVENTORY, **about, free=0)
                continue
            about["free"] = free = max(0, int(inventory.capacity[row]) - int(inventory.used[row]))
            about["units"] = units = UnitRange(
                int(inventory.min_unit[row]),
                int(inventory.max_unit[row]),
                int(inventory.step_size[row]),
            )
            if not is_allowed(amount, units.min_unit, units.max_unit, units.step_size):
                yield near.lack(self, GroupStage.UNIT, LackRule.UNITS, **about)
            if amount > free:
                yield near.lack(self, GroupStage.ROOM, LackRule.ROOM, **about)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """What the inventory has or allows, and what is wanted.

        >>> wanted = WantedResources((), ())
        >>> about = {"resource_class": "PCPU", "wanted": 64, "free": 28}
        >>> lack = Lack(GroupStage.ROOM, LackRule.ROOM, "_a", "n0", condition=wanted, **about)
        >>> wanted.lack_text(lack, "h", "n1_numa0")
        'n1_numa0 has 28 PCPU free, 64 are wanted'
        """
        if lack.rule is LackRule.INVENTORY:
            if provider is None:
                return f"No provider of {tree} has inventory of {lack.resource_class}"
            return f"{provider} has no inventory of {lack.resource_class}"
        wanted = f"{lack.wanted:,} {'is' if lack.wanted == 1 else 'are'} wanted"
        if lack.rule is LackRule.UNITS and lack.units is not None:
            units = lack.units
            return (
                f"{provider} gives {lack.resource_class} from {units.min_unit:,} to "
                f"{units.max_unit:,} in steps of "
                f"{units.step_size:,}, {wanted}"
            )
        return f"{provider} has {lack.free:,} {lack.resource_class} free, {wanted}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        suffix, name = lack.group or "", lack.resource_class
        assert name is not None
        if lack.units is not None and lack.free is not None:
            wanted = edits.group_of(query, suffix).resources[name]
            possible = nearest_amount(wanted, lack.free, lack.units)
            if possible is not None:
                yield change_amount(query, suffix, name, possible)
        yield from class_changes(query, suffix, name)

    def has_inventory(self, block: Block, ref: ProviderRef) -> bool:
        """Whether a provider has inventory of the first class, whatever its room."""
        inventory = block.inventories.get(self.amounts[0].class_id)
        return inventory is not None and inventory.row_of(ref.provider_index) >= 0


def in_both(first: IndexColumn, second: IndexColumn, size: int) -> IndexColumn:
    """The indexes that are in both columns of a block of this size."""
    if not len(first) or not len(second):
        return NO_INDEXES
    present = np.zeros(size, np.bool_)
    present[second] = True
    return first[present[first]]


def nearest_amount(wanted: int, free: int, units: UnitRange) -> int | None:
    """The largest amount below the wanted one that the inventory takes, else the smallest above.

    >>> nearest_amount(64, 28, UnitRange(1, 100, 8)), nearest_amount(1, 28, UnitRange(3, 9, 2))
    (24, 4)
    """
    step, most = units.step_size, min(free, units.max_unit)
    least = -(-max(1, units.min_unit) // step) * step
    below = min(wanted, most) // step * step
    if below >= least:
        return below if below != wanted else None
    return least if least <= most else None


def class_changes(query: CandidateQuery, suffix: str, name: str) -> Iterator[QueryChange]:
    """Ask for none of a class, if the group asks for another one."""
    if len(edits.group_of(query, suffix).resources) > 1:
        yield QueryChange(
            ("amount", suffix, name),
            f"ask for no {name}{place(query, suffix)}",
            DROP_CLASS,
            partial(edits.with_amount, suffix=suffix, name=name, amount=None),
        )


def _written(resources: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{amount}" for name, amount in resources.items())


def _passing(stage: GroupStage, inventory: InventoryColumns | None, amount: int) -> IndexColumn:
    """The providers that have a class, or allow the amount too, or have room for it, too."""
    if inventory is None:
        return NO_INDEXES
    if stage is GroupStage.ROOM:
        has_room = inventory.room_max >= amount
        return inventory.indexes[inventory.fits(amount)] if has_room else NO_INDEXES
    return (
        inventory.indexes[inventory.allows(amount)]
        if stage is GroupStage.UNIT
        else inventory.indexes
    )


def _amount_gaps(block: Block, class_id: int, amount: int) -> FloatColumn:
    gaps: FloatColumn = np.full(len(block), _NO_INVENTORY_GAP)
    inventory = block.inventories.get(class_id)
    if inventory is None:
        return gaps
    free = free_amount(inventory.capacity, inventory.used)
    missing: IntColumn = np.where(is_within(amount, free), 0, amount - np.maximum(free, 0))
    odd: BoolColumn = ~is_within(amount, inventory.max_unit)
    if not inventory.plain:
        odd |= ~keeps_units(amount, inventory.min_unit, inventory.step_size)
    gaps[inventory.indexes] = (missing > 0) + missing * (SHORTAGE_UNIT / amount) + odd * WHOLE_GAP
    return gaps
