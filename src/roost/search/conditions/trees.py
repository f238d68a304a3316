"""Conditions on the place of a provider: `in_tree` and `in_subtree` of a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.query_change import DROP_CONDITION, QueryChange
from roost.search.block import Block
from roost.search.columns import BoolColumn, FloatColumn, IndexColumn
from roost.search.conditions.amounts import in_both
from roost.search.conditions.condition import (
    NO_PROVIDER,
    NO_TREE,
    WHOLE_GAP,
    Condition,
    NearProvider,
    RootCondition,
)
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.lack import Lack, LackRule, LackStage
from roost.search.stages import GroupStage


def drop_in_tree(suffix: str) -> QueryChange:
    """Let a group take from any tree."""
    edit = partial(edits.without_in_tree, suffix=suffix)
    return QueryChange(("in_tree", suffix), f"leave in_tree{suffix} out", DROP_CONDITION, edit)


def drop_in_subtree(suffix: str) -> QueryChange:
    """Let a group take from any subtree."""
    edit = partial(edits.without_in_subtree, suffix=suffix)
    text = f"leave in_subtree{suffix} out"
    return QueryChange(("in_subtree", suffix), text, DROP_CONDITION, edit)


def _tree_of(forest: Forest, group: RequestGroup) -> TreeRef | None:
    """The tree to which in_tree binds a group; `NO_TREE` if the forest does not have it."""
    if group.in_tree is None:
        return None
    tree = forest.find_tree(group.in_tree) or NO_TREE
    # in_tree does not bind a group without resources, as long as such a tree exists.
    return tree if group.resources or tree == NO_TREE else None


@dataclass(frozen=True, slots=True)
class InTree(Condition):
    """The tree in which the provider of a slot must be."""

    tree: TreeRef
    # The unsuffixed group: the `Anchor` binds the tree, and sharing providers are excluded.
    binds_anchor: bool

    stages = (GroupStage.IN_TREE,)
    not_asked = "the query asks no in_tree"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        """The condition of `in_tree`."""
        tree = _tree_of(forest, group)
        return None if tree is None else cls(tree, not group.suffix)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        """The tree, by the provider that the query names."""
        if group.in_tree is not None:
            yield f"{'is' if singular else 'are'} in the tree of {group.in_tree}"

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        """The value of `in_tree`."""
        if group.in_tree is not None:
            yield "in_tree", group.in_tree

    @property
    def is_void(self) -> bool:
        """Whether the forest does not have the tree."""
        return self.tree == NO_TREE

    def passing(
        self, block: Block, block_number: int, indexes: IndexColumn, *, as_sharing: bool
    ) -> IndexColumn:
        """The providers of the tree."""
        if self.tree.block_number != block_number or (self.binds_anchor and as_sharing):
            return indexes[:0]
        inside: BoolColumn = block.tree_numbers[indexes] == self.tree.tree_number
        return indexes[inside]

    def excluding_stage(self, block: Block, block_number: int) -> GroupStage | None:
        """The stage, if the tree is in another block."""
        return GroupStage.IN_TREE if self.tree.block_number != block_number else None

    def gaps(self, block: Block, block_number: int, *, as_sharing: bool) -> FloatColumn | float:
        """A whole gap for each provider of another tree."""
        if self.binds_anchor:
            return WHOLE_GAP if as_sharing else 0.0
        if self.tree.block_number != block_number:
            return WHOLE_GAP
        gaps: FloatColumn = (block.tree_numbers != self.tree.tree_number) * WHOLE_GAP
        return gaps

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        """One lack of a provider of another tree."""
        tree_number = int(near.block.tree_numbers[near.ref.provider_index])
        own_tree = TreeRef(near.ref.block_number, tree_number)
        if near.as_sharing if self.binds_anchor else own_tree != self.tree:
            about = near.suffix, near.uuid, near.only_class
            yield Lack(LackStage.IN_TREE, LackRule.IN_TREE, *about, condition=self)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The provider that is elsewhere."""
        return f"{provider} is not in the tree that in_tree names"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Let the group take from any tree."""
        yield drop_in_tree(lack.group or "")


@dataclass(frozen=True, slots=True)
class InSubtree(Condition):
    """The subtree in which the provider of a slot must be."""

    top: ProviderRef

    stages = (GroupStage.IN_TREE,)
    not_asked = InTree.not_asked

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        """The condition of `in_subtree`."""
        if group.in_subtree is None:
            return None
        return cls(forest.find_provider(group.in_subtree) or NO_PROVIDER)

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        """Whether the group asks for a provider of a subtree."""
        return group.in_subtree is not None

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        """The subtree, by its top."""
        if group.in_subtree is not None:
            yield f"{'is' if singular else 'are'} in the subtree of {group.in_subtree}"

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        """The value of `in_subtree`."""
        if group.in_subtree is not None:
            yield "in_subtree", group.in_subtree

    @property
    def is_void(self) -> bool:
        """Whether the forest does not have the top."""
        return self.top == NO_PROVIDER

    def passing(
        self, block: Block, block_number: int, indexes: IndexColumn, *, as_sharing: bool
    ) -> IndexColumn:
        """The top and the providers below it."""
        if self.top.block_number != block_number:
            return indexes[:0]
        return in_both(indexes, block.subtree(self.top.provider_index), len(block))

    def excluding_stage(self, block: Block, block_number: int) -> GroupStage | None:
        """The stage, if the subtree is in another block."""
        return GroupStage.IN_TREE if self.top.block_number != block_number else None

    def gaps(self, block: Block, block_number: int, *, as_sharing: bool) -> FloatColumn | float:
        """A whole gap for each provider outside the subtree."""
        if self.top.block_number != block_number:
            return WHOLE_GAP
        gaps: FloatColumn = np.full(len(block), WHOLE_GAP)
        gaps[block.subtree(self.top.provider_index)] = 0
        return gaps

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        """One lack of a provider outside the subtree."""
        block_number, index = near.ref
        if block_number != self.top.block_number or index not in near.block.subtree(
            self.top.provider_index
        ):
            about = near.suffix, near.uuid, near.only_class
            yield Lack(LackStage.IN_TREE, LackRule.IN_SUBTREE, *about, condition=self)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The provider that is elsewhere."""
        return f"{provider} is not in the subtree that in_subtree names"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Let the group take from any subtree."""
        yield drop_in_subtree(lack.group or "")


@dataclass(frozen=True, slots=True)
class Anchor(RootCondition):
    """The only tree that may be an anchor: that of the unsuffixed group."""

    tree: TreeRef

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Self | None:
        """The condition of `in_tree`, or of `in_subtree`, without a suffix."""
        for group in query.groups:
            if not group.suffix:
                tree = _tree_of(forest, group)
                if tree is None and group.in_subtree is not None:
                    tree = forest.find_tree(group.in_subtree) or NO_TREE
                return None if tree is None else cls(tree)
        return None

    @classmethod
    def phrases(cls, query: CandidateQuery) -> Iterator[str]:
        """The tree, by the provider that the query names."""
        for group in query.groups:
            if not group.suffix:
                yield from InTree.phrases(group, GroupStage.IN_TREE, singular=True)

    @property
    def is_void(self) -> bool:
        """Whether the forest does not have the tree."""
        return self.tree == NO_TREE

    def trees(self, block: Block, block_number: int) -> BoolColumn:
        """The tree, if the block has it."""
        found = np.zeros(block.tree_count, np.bool_)
        if self.tree.block_number == block_number:
            found[self.tree.tree_number] = True
        return found

    def excludes(self, block: Block, block_number: int) -> bool:
        """Whether the tree is in another block."""
        return self.tree.block_number != block_number

    def gaps(self, block: Block, block_number: int) -> FloatColumn:
        """A whole gap for each tree but one."""
        gaps: FloatColumn = np.full(block.tree_count, WHOLE_GAP)
        if self.tree.block_number == block_number:
            gaps[self.tree.tree_number] = 0
        return gaps

    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        """One lack of each tree but one."""
        if tree != self.tree:
            uuid = block.uuids[int(block.starts[tree.tree_number])].decode()
            yield Lack(LackStage.ROOT, LackRule.IN_TREE, provider=uuid, condition=self)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The root that is elsewhere."""
        return f"{provider} is not in the tree that in_tree names"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Let the group take from any tree."""
        yield drop_in_tree("")
