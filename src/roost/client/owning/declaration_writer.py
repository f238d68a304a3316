"""A declaration as a driver: merges itself into whatever tree it is given, and remembers."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from roost.client.declaration import Declaration
from roost.client.errors import (
    DeclarationRefused,
    PlacementError,
    ResourceProviderRetrievalFailed,
    TransportFailed,
)
from roost.client.owning.merging import (
    NOTHING_HELD,
    Held,
    Merged,
    may_lose,
    merge,
    written_part,
)
from roost.client.owning.ownership import Owned, adopted, recovered
from roost.client.owning.records import Records
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.placement import Placement


def _tells_what_was_written(error: Exception) -> bool:
    """Whether it is certain that what failed was not done: refused, or never sent."""
    if isinstance(error, TransportFailed):
        return not error.maybe_done
    return isinstance(error, PlacementError) and (error.status is None or 400 <= error.status < 500)


class Memory:
    """What one owner knows to be its own in one tree."""

    def __init__(self, records: Records, mark: str, *, adopt: bool, remember: bool) -> None:
        self.mark = mark
        self._records = records
        self._adopt = adopt
        self._remember = remember
        self._root_uuid = ""
        self._remembered: Owned | None = None

    def recall(self, tree: ProviderTree, root_uuid: str, declaration: Declaration) -> Owned:
        """What is owned of a tree."""
        self._root_uuid = root_uuid
        self._remembered = self._records.load(root_uuid) or self._of_former_trees(tree)
        owned = self._remembered
        if owned is None:
            owned = recovered(tree, root_uuid, declaration, self.mark)
        if self._adopt:
            owned = adopted(tree, root_uuid, declaration, self.mark, owned)
        return owned

    def keep(self, owned: Owned) -> None:
        """Remember this from now on."""
        if self._remember and owned != (self._remembered or Owned()):
            self._records.save(self._root_uuid, owned)
            self._remembered = owned

    def _of_former_trees(self, tree: ProviderTree) -> Owned | None:
        """What is remembered of members of the tree that were roots themselves before."""
        former = {
            uuid: owned
            for uuid in tree.get_provider_uuids_in_tree(self._root_uuid)
            if (owned := self._records.load(uuid)) is not None
        }
        if not former:
            return None
        merged = Owned(
            {uuid: mine for owned in former.values() for uuid, mine in owned.providers.items()}
        )
        if self._remember:
            self._records.save(self._root_uuid, merged)
            for uuid in former:
                self._records.save(uuid, Owned())
        return merged


class DeclarationWriter:
    """Has the method of a driver. One for each report."""

    def __init__(
        self,
        declaration: Declaration,
        uuid: str,
        memory: Memory,
        placement: Placement,
        kept: tuple[str, ...] = (),
    ) -> None:
        self.uuid = uuid
        self._declaration = declaration
        self._memory = memory
        self._placement = placement
        self._kept = kept
        self._before = Owned()
        self._merged = Merged(Owned(), Owned())
        self._wanted = ProviderTree()

    @property
    def kept(self) -> tuple[str, ...]:
        """What could not be made true, in words."""
        return self._kept + self._merged.kept

    def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
        """Merge; what will be owned is remembered before anybody can write it."""
        found = provider_tree.data(self.uuid).name
        if found != nodename:
            raise DeclarationRefused(
                f"Provider {self.uuid} is named {found}, not {nodename}; providers are not "
                "renamed: give the name that it has, or another uuid"
            )
        root_uuid = provider_tree.get_provider_uuids_in_tree(self.uuid)[0]
        self._before = self._memory.recall(provider_tree, root_uuid, self._declaration)
        held = self._in_use(provider_tree)
        self._merged = self._merge(provider_tree, held)
        self._wanted = provider_tree
        self._memory.keep(self._merged.owned)

    def remember_written(self, written: ProviderTree, error: Exception) -> None:
        """A flush ended half way: what it did not write is not ours, whoever writes it next.

        If it is not known what was written, all of it may be ours.
        """
        if _tells_what_was_written(error):
            owned = written_part(self._merged, self._before, self._wanted, written)
            self._memory.keep(owned)

    def remember_settled(self) -> None:
        """All was written."""
        self._memory.keep(self._merged.settled)

    def _merge(self, tree: ProviderTree, held: Held) -> Merged:
        return merge(tree, self._declaration, self._before, self._memory.mark, held)

    def _in_use(self, tree: ProviderTree) -> Held:
        """What would be removed but is in use."""
        if not may_lose(self._before, self._declaration):
            return NOTHING_HELD
        losing = self._merge(copy.deepcopy(tree), NOTHING_HELD).losing
        used = {
            uuid: classes & {name for name, amount in self._usages(uuid).items() if amount}
            for uuid, classes in losing.items()
        }
        return {uuid: classes for uuid, classes in used.items() if classes}

    def _usages(self, uuid: str) -> Mapping[str, int]:
        try:
            return self._placement.usages(uuid)
        except ResourceProviderRetrievalFailed as error:
            if error.status != 404:
                raise
            # Gone already: then nobody uses it.
            return {}
