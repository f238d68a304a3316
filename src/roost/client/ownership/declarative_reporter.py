"""The reporter for declarations: changes only what its owner put on the server."""

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
from roost.client.ownership.declaration_driver import DeclarationDriver
from roost.client.ownership.owner_names import trait_of_owner
from roost.client.ownership.store import OwnershipStore
from roost.client.ownership.tree_ownership import TreeOwnership
from roost.client.reporting.difference import Difference
from roost.client.reporting.reporter import Reporter
from roost.model.identifiers import is_custom

IN_USE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Report:
    """What a report changed; `kept` has a line for each change that it could not make."""

    difference: Difference
    kept: tuple[str, ...] = ()


class DeclarativeReporter:
    """Makes declarations of one owner true, and keeps what other writers put there.

    The store has what the owner put there. With `adopt`, the owner takes over all that is on the
    declared providers, when it declares a tree for the first time.
    """

    def __init__(
        self,
        reporter: Reporter,
        owner: str,
        store: OwnershipStore,
        *,
        adopt: bool = False,
        accept_loss: bool = False,
    ) -> None:
        self.reporter = reporter
        self._store = store
        self._owner_trait = trait_of_owner(owner, os_traits.get_traits("OWNER_"))
        self._adopt = adopt
        self._accept_loss = accept_loss
        self._adopted: set[str] = set()
        self._known_traits: set[str] = set()

    def report(self, driver: DeclaringDriver, nodename: str, uuid: str | None = None) -> Report:
        """Make true on the server what the driver declares."""
        return self.declare(driver.declare(nodename), nodename, uuid)

    def declare(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """Make a declaration true in the tree of the named provider, or in a new tree.

        Undeclared resources that are in use are kept; the next report tries again to remove them.
        """
        for attempt in range(1, IN_USE_ATTEMPTS + 1):
            driver = self._driver(declaration, name, uuid)
            try:
                changed = self.reporter.report(
                    driver, name, driver.uuid, failed=driver.save_written
                )
            except (InventoryInUse, ResourceProviderSyncFailed) as error:
                # A consumer claimed it after the driver read the usages; the next attempt reads
                # them again.
                if attempt == IN_USE_ATTEMPTS or not _is_in_use(error):
                    raise
            else:
                driver.save_settled()
                self._adopted.add(driver.uuid)
                return Report(changed, driver.kept)
        raise AssertionError("the last attempt returns or raises")

    def preview(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """What `declare` would change; neither the server nor the store is written."""
        driver = self._driver(declaration, name, uuid, read_only=True)
        changes = self.reporter.preview(driver, name, driver.uuid)
        return Report(changes, driver.kept)

    def _driver(
        self, declaration: Declaration, name: str, uuid: str | None, *, read_only: bool = False
    ) -> DeclarationDriver:
        understood, unknown = self._without_unknown_traits(declaration)
        uuid = uuid or _declared_uuid(declaration, name) or self.reporter.uuid_of(name)
        adopt = self._adopt and uuid not in self._adopted
        return DeclarationDriver(
            understood,
            uuid,
            TreeOwnership(self._store, self._owner_trait, adopt=adopt, read_only=read_only),
            self.reporter.placement,
            unknown,
        )

    def _without_unknown_traits(
        self, declaration: Declaration
    ) -> tuple[Declaration, tuple[str, ...]]:
        """The declaration without standard traits that the server does not know; a line for each.

        A host may be newer than its server, and is reported all the same.
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
        return replace(declaration, providers=tuple(providers)), tuple(
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
