"""The interfaces of conditions: on the provider of a slot, and on the root of a tree.

An instance knows a condition in terms of one forest. Class methods know it by the query alone.
Instances of one kind that ask for the same are equal, so equal groups share them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Self

import numpy as np

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.search.block import Block
from roost.search.columns import BoolColumn, FloatColumn, IndexColumn, IntColumn
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.lack import Explained, Lack
from roost.search.stages import GroupStage, RequestStage

# A gap tells how far a provider is from meeting conditions. Its integer part counts failed checks.
# Its fraction is the shortage, in these units.
SHORTAGE_UNIT = 2.0**-20
# A failed check that has no amount.
WHOLE_GAP = 1 + SHORTAGE_UNIT

# What stands for the tree or the provider that a query names, if the forest has none. No block
# has it.
NO_TREE = TreeRef(-1, -1)
NO_PROVIDER = ProviderRef(-1, -1)


def whole_gaps(failed: IntColumn) -> FloatColumn:
    """The gaps of providers that fail so many checks without amounts."""
    gaps: FloatColumn = np.multiply(failed, WHOLE_GAP)
    return gaps


class NearProvider(NamedTuple):
    """A provider that comes near for a slot."""

    ref: ProviderRef
    block: Block
    suffix: str
    # The class of the slot, if its group has a slot for each class.
    only_class: str | None
    # Whether it is a sharing provider of another tree.
    as_sharing: bool
    # The traits of the root of the tree.
    root_traits: frozenset[str]

    @property
    def uuid(self) -> str:
        """The uuid of the provider."""
        return self.block.uuids[self.ref.provider_index].decode()


class Condition(Explained):
    """A condition of a request group on the provider of a slot."""

    # The stages at which the condition excludes providers.
    stages: ClassVar[tuple[GroupStage, ...]]
    # What an explanation says if the query has no such condition.
    not_asked: ClassVar[str]

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
    @abstractmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        """Keys, without suffix, and values that ask for it in a query string."""

    # In terms of a forest.

    @property
    def is_void(self) -> bool:
        """Whether no provider of the forest can meet the condition."""
        return False

    @abstractmethod
    def passing(
        self, block: Block, block_number: int, indexes: IndexColumn, *, as_sharing: bool
    ) -> IndexColumn:
        """Those of these providers that meet the condition.

        `as_sharing`: in other trees than their own.
        """

    @abstractmethod
    def excluding_stage(self, block: Block, block_number: int) -> GroupStage | None:
        """A stage that leaves no provider of the block, as far as the outline shows."""

    @abstractmethod
    def gaps(self, block: Block, block_number: int, *, as_sharing: bool) -> FloatColumn | float:
        """For each provider of a block, how far it is from meeting the condition."""

    @abstractmethod
    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        """Each check of the condition that a provider fails."""


class RootCondition(Explained):
    """A condition on the root of a tree."""

    # The stage at which it excludes trees.
    stage: ClassVar[RequestStage | GroupStage] = RequestStage.ROOT

    @classmethod
    @abstractmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Self | None:
        """The condition of a query; `None` if it asks nothing."""

    @classmethod
    def phrases(cls, query: CandidateQuery) -> Iterator[str]:
        """What the condition asks, each with a verb; the subject is a root."""
        return iter(())

    @classmethod
    def query_pairs(cls, query: CandidateQuery) -> Iterator[tuple[str, str]]:
        """Keys and values that ask for it in a query string, unless a group has them."""
        return iter(())

    @property
    def is_void(self) -> bool:
        """Whether no root of the forest can meet the condition."""
        return False

    @abstractmethod
    def trees(self, block: Block, block_number: int) -> BoolColumn:
        """The trees of a block whose roots meet the condition."""

    def excludes(self, block: Block, block_number: int) -> bool:
        """Whether no root of the block meets the condition, as far as the outline shows."""
        return False

    @abstractmethod
    def gaps(self, block: Block, block_number: int) -> FloatColumn:
        """For each tree of a block, how far its root is from meeting the condition."""

    @abstractmethod
    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        """Each check of the condition that the root of a tree fails."""
