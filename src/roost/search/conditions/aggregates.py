"""Conditions on aggregates: `member_of` of a group, and what it forbids to roots.

For the unsuffixed group, the aggregates of the root count for every provider of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from roost.model.candidate_query.change import QueryChange, drop_condition
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.text import listed
from roost.search.conditions.amounts import class_changes
from roost.search.conditions.condition import (
    BlockView,
    Condition,
    NearProvider,
    RootCondition,
    whole_gaps,
)
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.sets import SetFilter
from roost.search.conditions.stages import GroupStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn


class _OnAggregates:
    """A condition on the aggregates of one provider."""

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The aggregate that is missing or forbidden."""
        listing = listed(lack.aggregates, "or")
        if lack.rule is LackRule.NOT_MEMBER_OF:
            return f"{provider} is in the forbidden aggregate {listing}"
        return f"{provider} is not in aggregate {listing}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Allow the aggregate, or do not require it."""
        uuids, is_forbidden = lack.aggregates, lack.rule is LackRule.NOT_MEMBER_OF

        def relaxed(group: RequestGroup) -> RequestGroup:
            its = group.aggregates
            if is_forbidden:
                its = replace(
                    its, forbidden=tuple(each for each in its.forbidden if each not in uuids)
                )
            else:
                its = replace(its, any_of=tuple(each for each in its.any_of if each != uuids))
            return replace(group, aggregates=its)

        verb = "allow" if is_forbidden else "do not require"
        text = f"{verb} aggregate {' or '.join(uuids)} (member_of)"
        yield drop_condition(query, (lack.rule.value, lack.group or "", *uuids), text, relaxed)


@dataclass(frozen=True, slots=True)
class Aggregates(_OnAggregates, Condition):
    """The aggregates in which the provider of a slot must be, or must not be."""

    filter: SetFilter[str]
    # The unsuffixed group: the aggregates of the root count for every provider of the tree.
    counts_root: bool

    stages = (GroupStage.AGGREGATES,)
    not_asked = "the query asks no aggregates"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        any_of, forbidden = group.aggregates.any_of, group.aggregates.forbidden
        if not (any_of or forbidden):
            return None
        choices, excluded = tuple(dict.fromkeys(any_of)), tuple(dict.fromkeys(forbidden))
        found = SetFilter(choices, excluded, forest.aggregate_sets, str)
        return cls(found, not group.suffix)

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        return bool(group.aggregates.any_of)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        are = "is" if singular else "are"
        for uuids in group.aggregates.any_of:
            yield f"{are} in aggregate {listed(uuids, 'or')}"
        if group.aggregates.forbidden:
            yield f"{are} outside aggregate {listed(group.aggregates.forbidden)}"

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        for uuids in group.aggregates.any_of:
            yield "member_of", uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}"
        if group.aggregates.forbidden:
            yield "member_of", f"!in:{','.join(group.aggregates.forbidden)}"

    def of_root(self, forest: Forest) -> RootAggregates | None:
        return RootAggregates(self.filter) if self.filter.forbidden else None

    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        block = view.block
        own = roots = block.aggregate_set_numbers[indexes]
        if self.counts_root and not view.as_sharing:
            roots = block.aggregate_set_numbers[block.starts[block.tree_numbers[indexes]]]
        member, allowed = self.filter.choices_mask, self.filter.allowed_mask
        # The provider's own set, or its root's set, must meet every member_of by itself.
        passed = np.True_ if member is None else member[own] | member[roots]
        if allowed is not None:
            passed = passed & allowed[own] & allowed[roots]
        return indexes[passed]

    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        # The root's aggregates, which may count for a provider, are in the same block.
        mask, set_numbers = self.filter.choices_mask, view.block.outline.aggregate_set_numbers
        return None if mask is None or mask[set_numbers].any() else GroupStage.AGGREGATES

    def gaps(self, view: BlockView) -> FloatColumn:
        block = view.block
        missing = self.filter.missing_counts[block.aggregate_set_numbers]
        forbidden = self.filter.forbidden_counts[block.aggregate_set_numbers]
        if self.counts_root and not view.as_sharing:
            missing = np.minimum(missing, missing[block.starts[block.tree_numbers]])
            # The forbidden aggregates of a root are checked once, for the whole tree.
            forbidden[block.roots] = 0
        return whole_gaps(missing + forbidden)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        block, index = near.view.block, near.ref.provider_index
        own = int(block.aggregate_set_numbers[index])
        missing, forbidden = self.filter.missing(own), self.filter.forbidden_in(own)
        if self.counts_root and not near.view.as_sharing:
            root = int(block.starts[block.tree_numbers[index]])
            by_root = self.filter.missing(int(block.aggregate_set_numbers[root]))
            missing = min(missing, by_root, key=len)
            # The forbidden aggregates of the root are lacks of the root.
            forbidden = forbidden if index != root else []
        for uuids in missing:
            yield near.lack(self, GroupStage.AGGREGATES, LackRule.MEMBER_OF, aggregates=uuids)
        for uuids in forbidden:
            yield near.lack(self, GroupStage.AGGREGATES, LackRule.NOT_MEMBER_OF, aggregates=uuids)


@dataclass(frozen=True, slots=True)
class RootAggregates(_OnAggregates, RootCondition):
    """The aggregates that forbid a whole tree to the unsuffixed group, if its root is in them."""

    filter: SetFilter[str]

    stage = GroupStage.AGGREGATES

    def trees(self, view: BlockView) -> BoolColumn:
        allowed = self.filter.allowed_mask
        assert allowed is not None
        return allowed[view.block.aggregate_set_numbers[view.block.roots]]

    def excludes(self, view: BlockView) -> bool:
        return False

    def gaps(self, view: BlockView) -> FloatColumn:
        set_numbers = view.block.aggregate_set_numbers[view.block.roots]
        return whole_gaps(self.filter.forbidden_counts[set_numbers])

    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        root = int(block.starts[tree.tree_number])
        about = GroupStage.AGGREGATES, LackRule.NOT_MEMBER_OF, "", block.root_uuid(tree.tree_number)
        for uuids in self.filter.forbidden_in(int(block.aggregate_set_numbers[root])):
            yield Lack(*about, aggregates=uuids, condition=self)


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """A sharing provider serves a tree only if a provider of the tree is in its aggregates."""

    aggregates: frozenset[str]

    def lack(self, near: NearProvider, resource_class: str | None) -> Lack:
        """The lack of a tree that the sharing provider does not reach."""
        return near.lack(
            self,
            GroupStage.AGGREGATES,
            LackRule.REACH,
            resource_class=resource_class,
            aggregates=tuple(sorted(self.aggregates)),
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        could = f"{provider} could share {lack.resource_class or 'it'}, but"
        if not lack.aggregates:
            return f"{could} it is in no aggregate"
        return f"{could} no provider of {tree} is in aggregate {listed(lack.aggregates, 'or')}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        if lack.resource_class is not None:
            yield from class_changes(query, lack.group or "", lack.resource_class)
