"""Conditions on the place of a provider: `in_tree` and `in_subtree` of a group.

Those of the unsuffixed group bind the root, too: its tree is the only anchor, and no sharing
provider of another tree serves the group.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from roost.model.candidate_query import edits
from roost.model.candidate_query.change import DROP_CONDITION, QueryChange
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.conditions.amounts import in_both
from roost.search.conditions.condition import (
    BlockView,
    Condition,
    NearProvider,
    RootCondition,
    whole_gaps,
)
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.stages import GroupStage, TreeStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn

# What stands for the tree or the provider that a query names, if the forest has none. No block
# has it.
NO_TREE = TreeRef(-1, -1)
NO_PROVIDER = ProviderRef(-1, -1)


def drop_place(rule: LackRule, suffix: str) -> QueryChange:
    """Let a group take from any tree, or from any subtree."""
    nowhere: dict[str, Any] = {rule.value: None}
    return QueryChange(
        (rule.value, suffix),
        f"leave {rule.value}{suffix} out",
        DROP_CONDITION,
        partial(edits.edited, suffix=suffix, edit=lambda group: replace(group, **nowhere)),
    )


def _tree_of(forest: Forest, group: RequestGroup) -> TreeRef | None:
    """The tree to which in_tree binds a group; `NO_TREE` if the forest does not have it."""
    if group.in_tree is None:
        return None
    tree = forest.find_tree(group.in_tree) or NO_TREE
    # in_tree does not bind a group without resources, as long as such a tree exists.
    return tree if group.resources or tree == NO_TREE else None


@dataclass(frozen=True)
class _AtPlace(Condition):
    """A condition on the place of the provider of a slot."""

    place: TreeRef | ProviderRef
    # The unsuffixed group: no provider of another tree serves it.
    binds_root: bool

    stages = (GroupStage.IN_TREE,)
    not_asked = "the query asks no in_tree"
    # The value of its rule is the key in a query string, and the field of a request group.
    # What a provider at the place is, and what the root of its tree is; `{}` is what a query names.
    phrase: ClassVar[str]
    root_phrase: ClassVar[str]
    # What another provider is not, and what another root is not.
    lack_phrase: ClassVar[str]
    root_lack_phrase: ClassVar[str]

    @abstractmethod
    def inside(self, block: Block, indexes: IndexColumn) -> IndexColumn:
        """Those of these providers of the place's block that are at the place."""

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        for _, uuid in cls.query_pairs(group):
            yield f"{'is' if singular else 'are'} {cls.phrase.format(uuid)}"

    @classmethod
    def root_phrases(cls, group: RequestGroup) -> Iterator[str]:
        return (f"is {cls.root_phrase.format(uuid)}" for _, uuid in cls.query_pairs(group))

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        uuid: str | None = getattr(group, cls.rule.value)
        if uuid is not None:
            yield cls.rule.value, uuid

    @property
    def is_void(self) -> bool:
        return self.place.block_number < 0

    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        if self.place.block_number != view.block_number or (self.binds_root and view.as_sharing):
            return indexes[:0]
        return self.inside(view.block, indexes)

    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        return GroupStage.IN_TREE if self.place.block_number != view.block_number else None

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return f"{provider} is {self.lack_phrase}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        yield drop_place(self.rule, lack.group or "")


class InTree(_AtPlace):
    """The tree in which the provider of a slot must be."""

    place: TreeRef

    rule = LackRule.IN_TREE
    phrase = root_phrase = "in the tree of {}"
    lack_phrase = root_lack_phrase = "not in the tree that in_tree names"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        tree = _tree_of(forest, group)
        return None if tree is None else cls(tree, not group.suffix)

    def of_root(self, forest: Forest) -> OnlyAnchor:
        return OnlyAnchor(self.place, self)

    def inside(self, block: Block, indexes: IndexColumn) -> IndexColumn:
        inside: BoolColumn = block.tree_numbers[indexes] == self.place.tree_number
        return indexes[inside]

    # What the root of the unsuffixed group lacks, its providers do not lack again.

    def gaps(self, view: BlockView) -> FloatColumn:
        if self.binds_root and not view.as_sharing:
            return np.zeros(len(view.block))
        return super().gaps(view)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        if not self.binds_root or near.view.as_sharing:
            yield from super().lacks(near)


class InSubtree(_AtPlace):
    """The subtree in which the provider of a slot must be."""

    place: ProviderRef

    rule = LackRule.IN_SUBTREE
    phrase, root_phrase = "{} or below it", "the root of {}"
    lack_phrase = "neither the provider that in_subtree names nor below it"
    root_lack_phrase = "not the root of the provider that in_subtree names"

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

    def of_root(self, forest: Forest) -> OnlyAnchor:
        return OnlyAnchor(NO_TREE if self.is_void else forest.tree_of(self.place), self)

    def inside(self, block: Block, indexes: IndexColumn) -> IndexColumn:
        return in_both(indexes, block.subtree(self.place.provider_index), len(block))


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
            yield Lack(TreeStage.ROOT, self.bound_by.rule, provider=uuid, condition=self)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return f"{provider} is {self.bound_by.root_lack_phrase}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        return self.bound_by.changes(query, lack)
