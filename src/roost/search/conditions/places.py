"""Conditions on the place of a provider: `in_tree` and `in_subtree` of a group.

Those of the unsuffixed group bind the root, too: its tree is the only anchor, and no sharing
provider of another tree serves the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.query_change import DROP_CONDITION, QueryChange
from roost.search.conditions.amounts import in_both
from roost.search.conditions.condition import (
    BlockView,
    Condition,
    NearProvider,
    RootCondition,
    whole_gaps,
)
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.stages import GroupStage, RequestStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn

# What stands for the tree or the provider that a query names, if the forest has none. No block
# has it.
NO_TREE = TreeRef(-1, -1)
NO_PROVIDER = ProviderRef(-1, -1)


def drop_in_tree(suffix: str) -> QueryChange:
    """Let a group take from any tree."""
    return _drop("in_tree", suffix, lambda group: replace(group, in_tree=None))


def drop_in_subtree(suffix: str) -> QueryChange:
    """Let a group take from any subtree."""
    return _drop("in_subtree", suffix, lambda group: replace(group, in_subtree=None))


def _drop(key: str, suffix: str, edit: Callable[[RequestGroup], RequestGroup]) -> QueryChange:
    apply = partial(edits.edited, suffix=suffix, edit=edit)
    return QueryChange((key, suffix), f"leave {key}{suffix} out", DROP_CONDITION, apply)


def _tree_of(forest: Forest, group: RequestGroup) -> TreeRef | None:
    """The tree to which in_tree binds a group; `NO_TREE` if the forest does not have it."""
    if group.in_tree is None:
        return None
    tree = forest.find_tree(group.in_tree) or NO_TREE
    # in_tree does not bind a group without resources, as long as such a tree exists.
    return tree if group.resources or tree == NO_TREE else None


class _AtPlace(Condition):
    """A condition on the place of the provider of a slot."""

    stages = (GroupStage.IN_TREE,)
    not_asked = "the query asks no in_tree"
    rule: ClassVar[LackRule]

    def gaps(self, view: BlockView) -> FloatColumn:
        failed = np.ones(len(view.block), np.bool_)
        failed[self.passing(view, np.arange(len(view.block), dtype=np.int32))] = False
        return whole_gaps(failed)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        if not len(self.passing(near.view, np.asarray([near.ref.provider_index], np.int32))):
            yield near.lack(self, GroupStage.IN_TREE, self.rule)


@dataclass(frozen=True)
class InTree(_AtPlace):
    """The tree in which the provider of a slot must be."""

    tree: TreeRef
    # The unsuffixed group: what its root lacks, its providers do not lack again.
    binds_root: bool

    rule = LackRule.IN_TREE

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        tree = _tree_of(forest, group)
        return None if tree is None else cls(tree, not group.suffix)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        if group.in_tree is not None:
            yield f"{'is' if singular else 'are'} in the tree of {group.in_tree}"

    @classmethod
    def root_phrases(cls, group: RequestGroup) -> Iterator[str]:
        return cls.phrases(group, GroupStage.IN_TREE, singular=True)

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        if group.in_tree is not None:
            yield "in_tree", group.in_tree

    @property
    def is_void(self) -> bool:
        return self.tree == NO_TREE

    def of_root(self, forest: Forest) -> OnlyAnchor:
        return OnlyAnchor(self.tree, self)

    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        if self.tree.block_number != view.block_number or (self.binds_root and view.as_sharing):
            return indexes[:0]
        inside: BoolColumn = view.block.tree_numbers[indexes] == self.tree.tree_number
        return indexes[inside]

    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        return GroupStage.IN_TREE if self.tree.block_number != view.block_number else None

    def gaps(self, view: BlockView) -> FloatColumn:
        if self.binds_root and not view.as_sharing:
            return np.zeros(len(view.block))
        return super().gaps(view)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        if not self.binds_root or near.view.as_sharing:
            yield from super().lacks(near)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return f"{provider} is not in the tree that in_tree names"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        yield drop_in_tree(lack.group or "")


@dataclass(frozen=True)
class InSubtree(_AtPlace):
    """The subtree in which the provider of a slot must be."""

    top: ProviderRef
    # The unsuffixed group: no provider of another tree serves it.
    binds_root: bool

    rule = LackRule.IN_SUBTREE

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        if group.in_subtree is None:
            return None
        top = forest.find_provider(group.in_subtree)
        if top is None or _tree_of(forest, group) not in (None, forest.tree_of(top)):
            top = NO_PROVIDER
        return cls(top, not group.suffix)

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        return group.in_subtree is not None

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        if group.in_subtree is not None:
            yield f"{'is' if singular else 'are'} {group.in_subtree} or below it"

    @classmethod
    def root_phrases(cls, group: RequestGroup) -> Iterator[str]:
        if group.in_subtree is not None:
            yield f"is the root of {group.in_subtree}"

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        if group.in_subtree is not None:
            yield "in_subtree", group.in_subtree

    @property
    def is_void(self) -> bool:
        return self.top == NO_PROVIDER

    def of_root(self, forest: Forest) -> OnlyAnchor:
        return OnlyAnchor(NO_TREE if self.is_void else forest.tree_of(self.top), self)

    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        if self.top.block_number != view.block_number or (self.binds_root and view.as_sharing):
            return indexes[:0]
        return in_both(indexes, view.block.subtree(self.top.provider_index), len(view.block))

    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        return GroupStage.IN_TREE if self.top.block_number != view.block_number else None

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return f"{provider} is neither the provider that in_subtree names nor below it"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        yield drop_in_subtree(lack.group or "")


@dataclass(frozen=True)
class OnlyAnchor(RootCondition):
    """The only tree that may be an anchor: that to which a place binds the unsuffixed group."""

    tree: TreeRef
    bound_by: _AtPlace

    @property
    def is_void(self) -> bool:
        return self.tree == NO_TREE

    def trees(self, view: BlockView) -> BoolColumn:
        found = np.zeros(view.block.tree_count, np.bool_)
        if self.tree.block_number == view.block_number:
            found[self.tree.tree_number] = True
        return found

    def excludes(self, view: BlockView) -> bool:
        return self.tree.block_number != view.block_number

    def gaps(self, view: BlockView) -> FloatColumn:
        return whole_gaps(~self.trees(view))

    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        if tree != self.tree:
            uuid = block.root_uuid(tree.tree_number)
            yield Lack(RequestStage.ROOT, self.bound_by.rule, provider=uuid, condition=self)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        if self.bound_by.rule is LackRule.IN_TREE:
            return self.bound_by.lack_text(lack, tree, provider)
        return f"{provider} is not the root of the provider that in_subtree names"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        return self.bound_by.changes(query, lack)
