"""A driver that merges a declaration into the tree of its host."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from roost.client.declaration import Declaration
from roost.client.drivers.driver import Allocations
from roost.client.errors import DeclarationRefused, ResourceProviderRetrievalFailed
from roost.client.outcome import Outcome, outcome_of
from roost.client.ownership.record import OwnershipRecord, reclaimed_record
from roost.client.ownership.three_way_merge import (
    NOTHING_IN_USE,
    InventoriesInUse,
    MergeResult,
    may_remove_inventory,
    merge,
    wants_move,
    written_record,
)
from roost.client.ownership.tree_ownership import TreeOwnership
from roost.client.ownership.unrecorded import without_additions
from roost.client.ownership.withdrawal import WithdrawalPolicy
from roost.client.placement import Placement
from roost.client.provider_tree import ProviderTree
from roost.client.versions import OLDEST_THAT_MOVES, newest_of_server


class DeclarationDriver:
    """Edits a tree by the three-way merge, and keeps the ownership record true.

    Each report needs a driver of its own. `uuid` is the provider of the host. `kept` has lines
    about parts of the declaration that the reporter left out. If records cannot be saved, the
    driver may add nothing that the record lacks (`may_add`): after a restart, the owner
    would not know that it put these things there.
    """

    def __init__(
        self,
        declaration: Declaration,
        uuid: str,
        ownership: TreeOwnership,
        placement: Placement,
        kept: tuple[str, ...] = (),
        *,
        policy: WithdrawalPolicy | None = None,
        may_add: bool = True,
    ) -> None:
        self.uuid = uuid
        self._given = declaration
        # What the driver may write of it; each attempt of a report decides anew.
        self._declaration = declaration
        self._ownership = ownership
        self._placement = placement
        self._kept = kept
        self._policy = policy
        self.may_add = may_add
        self._may_move = True
        self._waiting: tuple[str, ...] = ()
        self._before = OwnershipRecord()
        self._merged = MergeResult(OwnershipRecord(), OwnershipRecord())
        self._wanted = ProviderTree()

    @property
    def kept(self) -> tuple[str, ...]:
        """A line for each part of the declaration that could not be made true."""
        return self._kept + self._waiting + self._merged.kept

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Merge the declaration, and save what will be owned before the reporter writes it."""
        found = provider_tree.data(self.uuid).name
        if found != nodename:
            raise DeclarationRefused(
                f"Provider {self.uuid} is named {found}, not {nodename}; providers are not "
                "renamed: give the name that it has, or another uuid"
            )
        root_uuid = provider_tree.get_provider_uuids_in_tree(self.uuid)[0]
        self._before = reclaimed_record(
            provider_tree,
            self.uuid,
            self._given,
            self._ownership.owner_trait,
            self._ownership.load(provider_tree, root_uuid, self._given),
        )
        if not self.may_add:
            self._declaration, self._waiting = without_additions(
                self._given, provider_tree, self._before, self._ownership.owner_trait
            )
        # Most reports move nothing, and need not ask the server for its versions.
        self._may_move = not wants_move(provider_tree, self._declaration) or self._server_moves()
        in_use = self._inventories_in_use(provider_tree)
        self._merged = self._merge(provider_tree, in_use)
        self._wanted = provider_tree
        if self.may_add:
            self._ownership.save(self._merged.pending)

    def save_written(self, written: ProviderTree, error: Exception) -> None:
        """Save what the owner owns after a flush that ended half way.

        If the outcome of the last write is unknown, the owner may own all that it was to write.
        """
        if outcome_of(error) is Outcome.NOT_DONE:
            record = written_record(self._merged, self._before, self._wanted, written)
            self._ownership.save_or_keep(record)

    def save_settled(self) -> None:
        """Save what the owner owns after a flush that succeeded."""
        self._ownership.save_or_keep(self._merged.settled)

    def _merge(self, tree: ProviderTree, in_use: InventoriesInUse) -> MergeResult:
        return merge(
            tree,
            self._declaration,
            self._before,
            self._ownership.owner_trait,
            in_use,
            policy=self._policy,
            may_move=self._may_move,
        )

    def _server_moves(self) -> bool:
        return newest_of_server(self._placement) >= OLDEST_THAT_MOVES

    def _inventories_in_use(self, tree: ProviderTree) -> InventoriesInUse:
        """The inventories that the merge would remove, and that are in use."""
        if not may_remove_inventory(self._before, self._declaration):
            return NOTHING_IN_USE
        removed = self._merge(copy.deepcopy(tree), NOTHING_IN_USE).removed_inventories
        used = {
            uuid: classes & {name for name, amount in self._usages(uuid).items() if amount}
            for uuid, classes in removed.items()
        }
        return {uuid: classes for uuid, classes in used.items() if classes}

    def _usages(self, uuid: str) -> Mapping[str, int]:
        try:
            return self._placement.usages(uuid)
        except ResourceProviderRetrievalFailed as error:
            if error.status != 404:
                raise
            # A provider that is gone has no allocations.
            return {}
