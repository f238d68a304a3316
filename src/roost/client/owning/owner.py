"""Reporting for a driver that declares: its declaration and the owner's memory make the tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

import os_traits

from roost.client.declaration import Declaration
from roost.client.drivers.driver import DeclaringDriver
from roost.client.errors import (
    InventoryInUse,
    PlacementError,
    ResourceProviderInUse,
    ResourceProviderSyncFailed,
)
from roost.client.owning.declaration_writer import DeclarationWriter, Memory
from roost.client.owning.ownership import owner_trait
from roost.client.owning.records import Records
from roost.client.reporting.difference import Difference
from roost.client.reporting.reporter import Reporter
from roost.model.identifiers import is_custom

IN_USE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Report:
    """What a report changed, and what it had to leave, in words."""

    difference: Difference
    kept: tuple[str, ...] = ()


class Owner:
    """A writer with a name and a memory, who declares trees through a reporter.

    What others have put on the same providers stays. With `adopt`, everything that is there on
    the declared providers is taken for the owner's own, the first time that a tree is declared.
    """

    def __init__(
        self, reporter: Reporter, name: str, records: Records, *, adopt: bool = False
    ) -> None:
        self.reporter = reporter
        self._records = records
        self._mark = owner_trait(name, os_traits.get_traits("OWNER_"))
        self._adopt = adopt
        self._adopted: set[str] = set()
        self._known_traits: set[str] = set()

    def report(self, driver: DeclaringDriver, nodename: str, uuid: str | None = None) -> Report:
        """Make what the driver declares true on the server."""
        return self.declare(driver.declare(nodename), nodename, uuid)

    def declare(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """Make a declaration true in the tree that the named provider is in, or begins.

        What is to be removed but in use is kept, and said to be; the next report tries again.
        """
        for attempt in range(1, IN_USE_ATTEMPTS + 1):
            writer = self._writer(declaration, name, uuid)
            try:
                changed = self.reporter.report(
                    writer, name, writer.uuid, failed=writer.remember_written
                )
            except (InventoryInUse, ResourceProviderSyncFailed) as error:
                # Somebody took it since the writer looked; it will look again.
                if attempt == IN_USE_ATTEMPTS or not _is_in_use(error):
                    raise
            else:
                writer.remember_settled()
                self._adopted.add(writer.uuid)
                return Report(changed, writer.kept)
        raise AssertionError("the last attempt returns or raises")

    def preview(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """What `declare` would do; nothing is written or remembered."""
        writer = self._writer(declaration, name, uuid, remember=False)
        changes = self.reporter.preview(writer, name, writer.uuid)
        return Report(changes, writer.kept)

    def _writer(
        self, declaration: Declaration, name: str, uuid: str | None, *, remember: bool = True
    ) -> DeclarationWriter:
        understood, unknown = self._understood(declaration)
        uuid = uuid or _declared_uuid(declaration, name) or self.reporter.uuid_of(name)
        adopt = self._adopt and uuid not in self._adopted
        return DeclarationWriter(
            understood,
            uuid,
            Memory(self._records, self._mark, adopt=adopt, remember=remember),
            self.reporter.placement,
            unknown,
        )

    def _understood(self, declaration: Declaration) -> tuple[Declaration, tuple[str, ...]]:
        """The declaration without standard traits that the server does not know, and these.

        A host may be newer than its server. That is no reason to report nothing.
        """
        asked = {
            trait
            for provider in declaration.providers
            for trait in provider.traits
            if not is_custom(trait)
        } - self._known_traits
        known = self.reporter.placement.known_traits(asked)
        self._known_traits |= known
        unknown = asked - known
        if not unknown:
            return declaration, ()
        providers = (
            replace(provider, traits=provider.traits - unknown)
            for provider in declaration.providers
        )
        return Declaration(tuple(providers)), tuple(
            f"trait {trait} is not written: the server is too old to know it, or it is misspelt"
            for trait in sorted(unknown)
        )


def _declared_uuid(declaration: Declaration, name: str) -> str | None:
    return next(
        (provider.uuid for provider in declaration.providers if provider.name == name), None
    )


def _is_in_use(error: PlacementError) -> bool:
    cause = error.__cause__ if isinstance(error, ResourceProviderSyncFailed) else error
    return isinstance(cause, ResourceProviderInUse | InventoryInUse)
