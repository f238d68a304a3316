"""Reporting for a driver that declares: its declaration and the owner's memory make the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import os_traits

from roost.client.declaration import Declaration
from roost.client.drivers.driver import DeclaringDriver
from roost.client.errors import (
    DeclarationRefused,
    InventoryInUse,
    PlacementError,
    ResourceProviderInUse,
    ResourceProviderRetrievalFailed,
    ResourceProviderSyncFailed,
)
from roost.client.owning.merging import NOTHING_HELD, Held, Merged, merge
from roost.client.owning.ownership import Owned, adopted, owner_trait, recovered
from roost.client.owning.records import Records
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.difference import Difference
from roost.client.reporting.reporter import Reporter


@dataclass(frozen=True, slots=True)
class Report:
    """What a report changed, and what it had to leave, in words."""

    difference: Difference
    kept: tuple[str, ...] = ()


class Owner:
    """A writer with a name and a memory, who declares trees through a reporter.

    What others have put on the same providers stays. With `adopt`, everything that is there on
    the declared providers is taken for the owner's own.
    """

    def __init__(
        self, reporter: Reporter, name: str, records: Records, *, adopt: bool = False
    ) -> None:
        self.reporter = reporter
        self._records = records
        self._mark = owner_trait(name, os_traits.get_traits("OWNER_"))
        self._adopt = adopt

    def report(self, driver: DeclaringDriver, nodename: str, uuid: str | None = None) -> Report:
        """Make what the driver declares true on the server."""
        return self.declare(driver.declare(nodename), nodename, uuid)

    def declare(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """Make a declaration true in the tree that the named provider is in, or begins.

        What is to be removed but in use is kept, and said to be; the next report tries again.
        """
        uuid = uuid or self.reporter.uuid_of(name)
        held: Held = NOTHING_HELD
        while True:
            writer = self._writer(declaration, uuid, held)
            try:
                changed = self.reporter.report(writer, name, uuid)
            except (InventoryInUse, ResourceProviderSyncFailed) as error:
                found = _in_use(error)
                if found is None or found in held:
                    raise
                losing = writer.merged.losing
                held = {**held, found: losing.get(found, frozenset()), **self._used(losing)}
            else:
                writer.settle()
                return Report(changed, writer.merged.kept)

    def _used(self, losing: Held) -> Held:
        """What of this is in use."""
        used = {
            uuid: classes & {name for name, amount in self._usages(uuid).items() if amount}
            for uuid, classes in losing.items()
        }
        return {uuid: classes for uuid, classes in used.items() if classes}

    def _usages(self, uuid: str) -> Mapping[str, int]:
        try:
            return self.reporter.placement.usages(uuid)
        except ResourceProviderRetrievalFailed as error:
            if error.status != 404:
                raise
            # It was deleted before something else was refused.
            return {}

    def preview(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """What `declare` would do; nothing is written or remembered."""
        uuid = uuid or self.reporter.uuid_of(name)
        writer = self._writer(declaration, uuid, NOTHING_HELD, remember=False)
        changes = self.reporter.preview(writer, name, uuid)
        return Report(changes, writer.merged.kept)

    def _writer(
        self,
        declaration: Declaration,
        uuid: str,
        held: Held,
        *,
        remember: bool = True,
    ) -> _Writer:
        return _Writer(declaration, uuid, self._records, self._mark, held, self._adopt, remember)


@dataclass(slots=True)
class _Writer:
    """The declaration as a driver: merges it into whatever tree it is given."""

    declaration: Declaration
    uuid: str
    records: Records
    mark: str
    held: Held
    adopt: bool
    remember: bool
    merged: Merged = field(default_factory=lambda: Merged(Owned(), Owned()))
    root_uuid: str = ""

    def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
        """Merge; what will be owned is remembered before anybody can write it."""
        found = provider_tree.data(self.uuid).name
        if found != nodename:
            raise DeclarationRefused(
                f"Provider {self.uuid} is named {found}, not {nodename}; providers are not renamed"
            )
        self.root_uuid = provider_tree.get_provider_uuids_in_tree(self.uuid)[0]
        owned = self._owned(provider_tree)
        self.merged = merge(provider_tree, self.declaration, owned, self.mark, self.held)
        if self.remember:
            self.records.save(self.root_uuid, self.merged.owned)

    def settle(self) -> None:
        """Remember that all was written."""
        self.records.save(self.root_uuid, self.merged.settled)

    def _owned(self, tree: ProviderTree) -> Owned:
        owned = self.records.load(self.root_uuid)
        if owned is None:
            owned = recovered(tree, self.root_uuid, self.declaration, self.mark)
        return adopted(tree, self.declaration, self.mark, owned) if self.adopt else owned


def _in_use(error: PlacementError) -> str | None:
    """The provider of which something is in use, if that is what the error says."""
    cause = error.__cause__ if isinstance(error, ResourceProviderSyncFailed) else error
    if isinstance(cause, ResourceProviderInUse | InventoryInUse):
        return error.provider_uuid
    return None
