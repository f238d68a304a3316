"""The interfaces of conditions: on the provider of a slot, and on the root of a tree.

An instance knows a condition in terms of one forest. Class methods know it by the query alone.
Instances of one kind that ask for the same are equal, so equal groups share a requirement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from roost.model.candidate_query.query import RequestGroup
from roost.search.conditions.lack import Explained, Lack, LackRule
from roost.search.conditions.stages import GroupStage, SearchStage, TreeStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn, IntColumn

# A gap tells how far a provider is from meeting conditions. Its integer part counts failed checks.
# Its fraction is the shortage, in these units.
SHORTAGE_UNIT = 2.0**-20
# A failed check that has no amount.
WHOLE_GAP = 1 + SHORTAGE_UNIT


def whole_gaps(failed: IntColumn | BoolColumn) -> FloatColumn:
    """The gaps of providers that fail so many checks without amounts."""
    gaps: FloatColumn = np.multiply(failed, WHOLE_GAP)
    return gaps


class BlockView(NamedTuple):
    """A block, as conditions look at it."""

    block: Block
    block_number: int
    # Whether the providers count in other trees than their own, as sharing providers.
    as_sharing: bool = False


class NearProvider(NamedTuple):
    """A provider that comes near for a slot."""

    ref: ProviderRef
    view: BlockView
    suffix: str
    # The class of the slot, if its group has a slot for each class.
    only_class: str | None
    # The traits of the root of the tree.
    root_traits: frozenset[str]

    def lack(self, condition: Explained, stage: SearchStage, rule: LackRule, **facts: Any) -> Lack:
        """One check that the provider fails."""
        uuid = self.view.block.uuids[self.ref.provider_index].decode()
        about = {"resource_class": self.only_class, **facts}
        return Lack(stage, rule, self.suffix, uuid, condition=condition, **about)


class Condition(Explained):
    """A condition of a request group on the provider of a slot."""

    # The stages at which the condition excludes providers.
    stages: ClassVar[tuple[GroupStage, ...]]
    # What an explanation says if the query has no such condition.
    not_asked: ClassVar[str]
    # What its check asks for, if it has a single one.
    rule: ClassVar[LackRule]

    # By the query alone.

    @classmethod
    @abstractmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        """The condition of a group; `None` if it asks nothing."""

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        """Whether the group asks for a provider by this condition, not only excludes some."""
        return False

    @classmethod
    @abstractmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        """What the condition asks at a stage, each with a verb; the subject is a provider."""

    @classmethod
    def root_phrases(cls, group: RequestGroup) -> Iterator[str]:
        """What the condition of the unsuffixed group asks of the root, each with a verb."""
        return iter(())

    @classmethod
    @abstractmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        """Keys, without suffix, and values that ask for it in a query string."""

    # In terms of a forest.

    @property
    def is_void(self) -> bool:
        """Whether no provider of the forest can meet the condition."""
        return False

    def of_root(self, forest: Forest) -> RootCondition | None:
        """What the condition asks of the root, if it is one of the unsuffixed group."""
        return None

    @abstractmethod
    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        """Those of these providers that meet the condition."""

    @abstractmethod
    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        """A stage that leaves no provider of the block, as far as the outline shows."""

    # A condition of several checks counts them itself. One check has these answers.

    def gaps(self, view: BlockView) -> FloatColumn:
        """For each provider of the block, how far it is from meeting the condition."""
        failed = np.ones(len(view.block), np.bool_)
        failed[self.passing(view, np.arange(len(view.block), dtype=np.int32))] = False
        return whole_gaps(failed)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        """Each check of the condition that a provider fails."""
        if not len(self.passing(near.view, np.asarray([near.ref.provider_index], np.int32))):
            yield near.lack(self, self.stages[0], self.rule)


class RootCondition(Explained):
    """A condition on the root of a tree: `root_required`, or one of the unsuffixed group."""

    # The stage at which the condition excludes trees.
    stage: ClassVar[SearchStage] = TreeStage.ROOT

    @property
    def is_void(self) -> bool:
        """Whether no root of the forest can meet the condition."""
        return False

    @abstractmethod
    def trees(self, view: BlockView) -> BoolColumn:
        """The trees of the block whose roots meet the condition."""

    @abstractmethod
    def excludes(self, view: BlockView) -> bool:
        """Whether no root of the block meets the condition, as far as the outline shows."""

    @abstractmethod
    def gaps(self, view: BlockView) -> FloatColumn:
        """For each tree of the block, how far its root is from meeting the condition."""

    @abstractmethod
    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        """Each check of the condition that the root of a tree fails."""
