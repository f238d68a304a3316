"""Conditions on aggregates: `member_of` of a group, and what it forbids to roots.

For the unsuffixed group, the aggregates of the root count for every provider of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Self

import numpy as np

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter
from roost.model.query_change import DROP_CONDITION, QueryChange, place
from roost.model.text import listed
from roost.search.block import Block
from roost.search.columns import BoolColumn, FloatColumn, IndexColumn, IntColumn
from roost.search.conditions.amounts import class_changes
from roost.search.conditions.condition import Condition, NearProvider, RootCondition, whole_gaps
from roost.search.forest import Forest, TreeRef
from roost.search.lack import Lack, LackRule, LackStage
from roost.search.set_table import SetTable
from roost.search.stages import GroupStage


@dataclass(frozen=True)
class _AggregateSets:
    """A filter of aggregates, in terms of the aggregate sets of a forest."""

    wanted: AggregateFilter
    sets: SetTable[str] = field(compare=False, repr=False)

    @cached_property
    def member_mask(self) -> BoolColumn | None:
        """By aggregate set, whether it has an aggregate of each `member_of`; `None` if all do."""
        # One mask of a `member_of` is held at a time.
        mask: BoolColumn | None = None
        for uuids in dict.fromkeys(self.wanted.any_of):
            found = self.sets.with_any(uuids)
            mask = found if mask is None else mask & found
        return mask

    @cached_property
    def allowed_mask(self) -> BoolColumn | None:
        """By aggregate set, whether it has no forbidden aggregate; `None` if all are allowed."""
        forbidden = self.wanted.forbidden
        return ~self.sets.with_any(forbidden) if forbidden else None

    @cached_property
    def missing_by_set(self) -> IntColumn:
        """By aggregate set, how many `member_of` it does not meet."""
        missing = np.zeros(len(self.sets), np.int64)
        for uuids in dict.fromkeys(self.wanted.any_of):
            missing += ~self.sets.with_any(uuids)
        return missing

    @cached_property
    def forbidden_by_set(self) -> IntColumn:
        """By aggregate set, how many forbidden aggregates it has."""
        found = np.zeros(len(self.sets), np.int64)
        for uuid in dict.fromkeys(self.wanted.forbidden):
            found += self.sets.with_any((uuid,))
        return found

    def missing(self, set_number: int) -> list[tuple[str, ...]]:
        """Every `member_of` that a set does not meet."""
        held = self.sets[set_number]
        return [uuids for uuids in dict.fromkeys(self.wanted.any_of) if held.isdisjoint(uuids)]

    def forbidden(self, set_number: int) -> list[str]:
        """The forbidden aggregates that a set has."""
        held = self.sets[set_number]
        return [uuid for uuid in dict.fromkeys(self.wanted.forbidden) if uuid in held]

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The aggregate that is missing or forbidden."""
        listing = listed(lack.aggregates, "or")
        if lack.rule is LackRule.NOT_MEMBER_OF:
            return f"{provider} is in the forbidden aggregate {listing}"
        return f"{provider} is not in aggregate {listing}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Allow the aggregate, or do not require it."""
        suffix, uuids = lack.group or "", lack.aggregates
        listing = f"aggregate {' or '.join(uuids)} (member_of){place(query, suffix)}"
        if lack.rule is LackRule.NOT_MEMBER_OF:
            verb, edit = "allow", partial(edits.without_not_member_of, uuid=uuids[0])
        else:
            verb, edit = "do not require", partial(edits.without_member_of, uuids=uuids)
        subject = (lack.rule.value, suffix, *uuids)
        yield QueryChange(
            subject, f"{verb} {listing}", DROP_CONDITION, partial(edit, suffix=suffix)
        )


@dataclass(frozen=True)
class Aggregates(_AggregateSets, Condition):
    """The aggregates in which the provider of a slot must be, or must not be."""

    # The unsuffixed group: the aggregates of the root count for every provider of the tree.
    counts_root: bool = False

    stages = (GroupStage.AGGREGATES,)
    not_asked = "the query asks no aggregates"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        """The condition of `member_of`."""
        if not (group.aggregates.any_of or group.aggregates.forbidden):
            return None
        return cls(group.aggregates, forest.aggregate_sets, not group.suffix)

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        """Whether the group requires an aggregate."""
        return bool(group.aggregates.any_of)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        """The aggregates to be in, and those to be outside."""
        are = "is" if singular else "are"
        for uuids in group.aggregates.any_of:
            yield f"{are} in aggregate {listed(uuids, 'or')}"
        if group.aggregates.forbidden:
            yield f"{are} outside aggregate {listed(group.aggregates.forbidden)}"

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        """All values of `member_of`."""
        for uuids in group.aggregates.any_of:
            yield "member_of", uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}"
        if group.aggregates.forbidden:
            yield "member_of", f"!in:{','.join(group.aggregates.forbidden)}"

    def passing(
        self, block: Block, block_number: int, indexes: IndexColumn, *, as_sharing: bool
    ) -> IndexColumn:
        """The providers whose aggregates, or those of their root, will do."""
        own = roots = block.aggregate_set_numbers[indexes]
        if self.counts_root and not as_sharing:
            roots = block.aggregate_set_numbers[block.starts[block.tree_numbers[indexes]]]
        if self.member_mask is None:
            passed = np.ones(len(indexes), np.bool_)
        else:
            # The provider's own set, or its root's set, must meet every member_of by itself.
            passed = self.member_mask[own] | self.member_mask[roots]
        if self.allowed_mask is not None:
            passed = passed & self.allowed_mask[own] & self.allowed_mask[roots]
        return indexes[passed]

    def excluding_stage(self, block: Block, block_number: int) -> GroupStage | None:
        """The stage, if no set of the block meets every `member_of`."""
        # The root's aggregates, which may count for a provider, are in the same block.
        mask = self.member_mask
        is_empty = mask is not None and not mask[block.outline.aggregate_set_numbers].any()
        return GroupStage.AGGREGATES if is_empty else None

    def gaps(self, block: Block, block_number: int, *, as_sharing: bool) -> FloatColumn:
        """A whole gap for each `member_of` that is not met, and for each forbidden aggregate."""
        missing = self.missing_by_set[block.aggregate_set_numbers]
        forbidden = self.forbidden_by_set[block.aggregate_set_numbers]
        if self.counts_root and not as_sharing:
            missing = np.minimum(missing, missing[block.starts[block.tree_numbers]])
            # The forbidden aggregates of a root are checked once, for the whole tree.
            forbidden[block.roots] = 0
        return whole_gaps(missing + forbidden)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        """A lack for each `member_of` that is not met, and for each forbidden aggregate."""
        block, index = near.block, near.ref.provider_index
        own = int(block.aggregate_set_numbers[index])
        missing, forbidden = self.missing(own), self.forbidden(own)
        if self.counts_root and not near.as_sharing:
            root = int(block.starts[block.tree_numbers[index]])
            by_root = self.missing(int(block.aggregate_set_numbers[root]))
            missing = min(missing, by_root, key=len)
            # The forbidden aggregates of the root are lacks of the root.
            forbidden = forbidden if index != root else []
        for rule, uuids in (
            *((LackRule.MEMBER_OF, each) for each in missing),
            *((LackRule.NOT_MEMBER_OF, (each,)) for each in forbidden),
        ):
            yield Lack(
                LackStage.AGGREGATES,
                rule,
                near.suffix,
                near.uuid,
                near.only_class,
                aggregates=uuids,
                condition=self,
            )


class RootAggregates(_AggregateSets, RootCondition):
    """The aggregates that forbid a whole tree to the unsuffixed group, if its root is in them."""

    stage = GroupStage.AGGREGATES

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Self | None:
        """The condition of `member_of` without a suffix, if it forbids aggregates."""
        for group in query.groups:
            if not group.suffix and group.aggregates.forbidden:
                return cls(group.aggregates, forest.aggregate_sets)
        return None

    def trees(self, block: Block, block_number: int) -> BoolColumn:
        """The trees whose root is in no forbidden aggregate."""
        assert self.allowed_mask is not None
        return self.allowed_mask[block.aggregate_set_numbers[block.roots]]

    def gaps(self, block: Block, block_number: int) -> FloatColumn:
        """A whole gap for each forbidden aggregate."""
        return whole_gaps(self.forbidden_by_set[block.aggregate_set_numbers[block.roots]])

    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        """A lack for each forbidden aggregate."""
        root = int(block.starts[tree.tree_number])
        uuid = block.uuids[root].decode()
        for each in self.forbidden(int(block.aggregate_set_numbers[root])):
            yield Lack(
                LackStage.AGGREGATES,
                LackRule.NOT_MEMBER_OF,
                "",
                uuid,
                aggregates=(each,),
                condition=self,
            )


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """A sharing provider serves a tree only if a provider of the tree is in its aggregates."""

    aggregates: frozenset[str]

    def lack(self, near: NearProvider, resource_class: str | None) -> Lack:
        """The lack of a tree that the sharing provider does not reach."""
        return Lack(
            LackStage.AGGREGATES,
            LackRule.REACH,
            near.suffix,
            near.uuid,
            resource_class,
            aggregates=tuple(sorted(self.aggregates)),
            condition=self,
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """What the provider could share, and why it does not."""
        could = f"{provider} could share {lack.resource_class or 'it'}, but"
        if not lack.aggregates:
            return f"{could} it is in no aggregate"
        return f"{could} no provider of {tree} is in aggregate {listed(lack.aggregates, 'or')}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Ask for nothing of what the provider could share."""
        if lack.resource_class is not None:
            yield from class_changes(query, lack.group or "", lack.resource_class)
