"""Sharing providers stage by stage: which of them each stage leaves, and which trees they reach."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from roost.search.columns import SetMask
from roost.search.eligibility import eligible_by_stage
from roost.search.forest import Forest, ProviderRef
from roost.search.plan import Plan
from roost.search.stages import GROUP_STAGES, GroupStage


class StagedSharing:
    """For each requirement and stage, the sharing providers that are left."""

    def __init__(self, forest: Forest, plan: Plan, pause: Callable[[], None]) -> None:
        self._forest = forest
        # By requirement index, then by stage.
        self.refs = tuple(
            {stage: list[ProviderRef]() for stage in GROUP_STAGES} for _ in plan.requirements
        )
        for block_number, refs in groupby(
            sorted(filter(self._is_in_aggregate, forest.sharing_refs)),
            key=lambda ref: ref.block_number,
        ):
            pause()
            self._add_block(plan, block_number, list(refs))
        self._masks: dict[tuple[ProviderRef, ...], SetMask] = {}
        # In the same order: by a tree's aggregate set, whether one of them reaches the tree.
        self.reach_masks: tuple[dict[GroupStage, SetMask], ...] = tuple(
            {stage: self._mask(tuple(refs)) for stage, refs in by_stage.items()}
            for by_stage in self.refs
        )

    def reaches(self, ref: ProviderRef, tree_aggregates: frozenset[str]) -> bool:
        """Whether a sharing provider reaches the trees whose providers are in these aggregates."""
        return not tree_aggregates.isdisjoint(self._aggregates(ref))

    def _add_block(self, plan: Plan, block_number: int, refs: list[ProviderRef]) -> None:
        block = self._forest.blocks[block_number]
        for requirement, by_stage in zip(plan.requirements, self.refs, strict=True):
            left = eligible_by_stage(requirement, block, block_number, as_sharing=True)
            for stage, indexes in zip(GROUP_STAGES, left, strict=True):
                found = set(indexes.tolist())
                by_stage[stage] += [ref for ref in refs if ref.provider_index in found]

    def _is_in_aggregate(self, ref: ProviderRef) -> bool:
        return bool(self._aggregates(ref))

    def _aggregates(self, ref: ProviderRef) -> frozenset[str]:
        block = self._forest.blocks[ref.block_number]
        return self._forest.aggregate_sets[int(block.aggregate_set_numbers[ref.provider_index])]

    def _mask(self, refs: tuple[ProviderRef, ...]) -> SetMask:
        if not refs:
            return None
        mask = self._masks.get(refs)
        if mask is None:
            aggregates = frozenset[str]().union(*map(self._aggregates, refs))
            mask = self._masks[refs] = self._forest.aggregate_sets.with_any(aggregates)
        return mask
