"""The reporter for declarations: changes only what its owner put on the server."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roost.client.drivers.driver import DeclaringDriver, checked_declaration
from roost.client.errors import (
    DeclarationRefused,
    InventoryInUse,
    PlacementError,
    RecordsUnavailable,
    ResourceProviderCreationFailed,
    ResourceProviderInUse,
    ResourceProviderSyncFailed,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.ownership.declaration_driver import DeclarationDriver, TreeOwnership
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.store import OwnershipStore
from roost.client.ownership.three_way_merge import (
    MISSING_REPORTS,
    MISSING_SECONDS,
    WithdrawalPolicy,
)
from roost.client.placement.answers import UNKNOWN_TRAIT_ADVICE
from roost.client.reading.lookup import ProviderFinder
from roost.client.reporting.reporter import Reporter
from roost.model.identifiers import is_custom
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.difference import Difference
from roost.model.trees.owner_names import child_uuid, trait_of_owner

_LOG = logging.getLogger(__name__)

IN_USE_ATTEMPTS = 3


def without_providers_elsewhere(
    declaration: Declaration, elsewhere: Mapping[str, str]
) -> tuple[Declaration, tuple[str, ...]]:
    """The declaration without these providers and all below them; a line for each of them.

    `elsewhere` has the places of the existing providers by declared name. What the host already
    has of the providers below stays as it is.
    """
    kept: list[DeclaredProvider] = []
    left_out: set[str] = set()
    lines: list[str] = []
    for provider in declaration.providers:
        if provider.name in elsewhere:
            place = elsewhere[provider.name]
            lines.append(f"{provider.name}: not created, it exists {place}; move or rename that")
        elif provider.parent in left_out:
            lines.append(f"{provider.name}: waits for {provider.parent}")
        else:
            kept.append(provider)
            continue
        left_out.add(provider.name)
    unread = replace(declaration.unread, names=declaration.unread.names | left_out)
    return Declaration(tuple(kept), unread), tuple(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """What a report changed; `kept` has a line for each change that it could not make."""

    difference: Difference
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Task:
    """A declaration for the tree of one provider, in so far as it can be made true.

    `kept` has a line for each part of the declaration that was left out.
    """

    declaration: Declaration
    name: str
    uuid: str
    policy: WithdrawalPolicy | None
    kept: tuple[str, ...]


class DeclarativeReporter:
    """Makes declarations of one owner true, and keeps what other writers put there.

    The store has what the owner put there. With `adopt`, the owner takes over all that is on the
    declared providers, when it declares a tree for the first time.

    What a driver no longer finds is withdrawn after `missing_reports` reports and
    `missing_seconds`. A driver that suddenly finds less than half of what it found before raises
    `SuddenLoss`. With `accept_loss`, what is missing is withdrawn at once.

    A record belongs to one server; `server` may be shared by reporters of several threads.
    """

    def __init__(
        self,
        reporter: Reporter,
        owner: str,
        store: OwnershipStore,
        *,
        adopt: bool = False,
        accept_loss: bool = False,
        missing_reports: int = MISSING_REPORTS,
        missing_seconds: float = MISSING_SECONDS,
        clock: Callable[[], float] = time.time,
        server: KnownServer | None = None,
    ) -> None:
        self.reporter = reporter
        self._server = server or KnownServer(reporter.placement)
        self._store = store
        self._owner = owner
        self._adopt = adopt
        self._accept_loss = accept_loss
        self._missing_reports = missing_reports
        self._missing_seconds = missing_seconds
        self._clock = clock
        self._adopted: set[str] = set()

    # -- what a driver finds

    def report(self, driver: DeclaringDriver, nodename: str, uuid: str | None = None) -> Report:
        """Make true on the server what the driver declares.

        A child whose name a provider of another tree has is left out: it must not hold up the rest.
        """
        task = self._found(driver, nodename, uuid)
        try:
            return self._make_true(task)
        except ResourceProviderCreationFailed as error:
            # After a server error the provider may have been created, and no name is in the way.
            if outcome_of(error) is not Outcome.NOT_DONE:
                raise
            elsewhere = self._elsewhere(task)
            if not elsewhere:
                raise
        possible, lines = without_providers_elsewhere(task.declaration, elsewhere)
        return self._make_true(replace(task, declaration=possible, kept=lines + task.kept))

    def preview_report(
        self, driver: DeclaringDriver, nodename: str, uuid: str | None = None
    ) -> Report:
        """What `report` would change; neither the server nor the store is written."""
        return self._preview(self._found(driver, nodename, uuid))

    # -- what a program or an operator declares

    def declare(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """Make a declaration true in the tree of the named provider, or in a new tree.

        What is no longer declared is withdrawn at once. Undeclared resources that are in use are
        kept; the next report tries again to remove them.
        """
        return self._make_true(self._task(declaration, name, uuid))

    def preview(self, declaration: Declaration, name: str, uuid: str | None = None) -> Report:
        """What `declare` would change; neither the server nor the store is written."""
        return self._preview(self._task(declaration, name, uuid))

    # -- inside

    def _found(self, driver: DeclaringDriver, nodename: str, uuid: str | None) -> _Task:
        """What a driver declares now. Its host must not have another name on the server by now."""
        declaration = checked_declaration(driver.declare(nodename), nodename)
        policy = self._policy_for(driver)
        return self._task(declaration, nodename, uuid, policy, self._refuse_renamed)

    def _task(
        self,
        declaration: Declaration,
        name: str,
        uuid: str | None,
        policy: WithdrawalPolicy | None = None,
        check_new: Callable[[str], None] | None = None,
    ) -> _Task:
        uuid = (
            uuid
            or next((each.uuid for each in declaration.providers if each.name == name), None)
            or self.reporter.uuid_of(name, check_new)
        )
        understood, unknown = self._without_unknown_traits(declaration)
        return _Task(understood, name, uuid, policy, kept=unknown)

    def _refuse_renamed(self, name: str) -> None:
        """Refuse a new host if the owner has a host of this name that was renamed since."""
        for root_uuid in self._store.trees():
            record = self._store.load(root_uuid)
            if record is None or record.provider(root_uuid, "").name != name:
                continue
            if self._server.is_another(record):
                continue
            found = self.reporter.placement.provider(root_uuid)
            if found is not None:
                raise DeclarationRefused(
                    f"Provider {root_uuid} was {name}, and is named {found['name']} now; providers "
                    f"are not renamed: give it the name {name} again, report it as "
                    f"{found['name']}, or remove its ownership record to begin a new host"
                )

    def _elsewhere(self, task: _Task) -> Mapping[str, str]:
        """Where the declared children are that exist in another tree than their host's."""
        host = self.reporter.placement.provider(task.uuid)
        if host is None:
            return {}
        children = [each for each in task.declaration.providers if each.parent is not None]
        finder = ProviderFinder(self.reporter.placement, len(children))
        owner_trait = trait_of_owner(self._owner)
        places = {}
        for child in children:
            found = finder.named(child.name) or finder.with_uuid(
                child.uuid or child_uuid(task.uuid, owner_trait, child.name)
            )
            if found is not None and found["root_provider_uuid"] != host["root_provider_uuid"]:
                root = finder.with_uuid(found["root_provider_uuid"])
                tree = root["name"] if root is not None else found["root_provider_uuid"]
                places[child.name] = f"as {found['name']} ({found['uuid']}) in the tree of {tree}"
        return places

    def _policy_for(self, driver: DeclaringDriver) -> WithdrawalPolicy | None:
        """How to withdraw what the driver does not declare; `None` means at once."""
        # What an operator removes from a file is meant to go, and is not missing.
        if self._accept_loss or getattr(driver, "declares_intent", False):
            return None
        return WithdrawalPolicy(self._clock(), self._missing_reports, self._missing_seconds)

    def _make_true(self, task: _Task) -> Report:
        try:
            return self._write(task, may_add=True)
        except RecordsUnavailable as error:
            _LOG.warning("%s", error)
            return self._write(task, may_add=False)

    def _write(self, task: _Task, *, may_add: bool) -> Report:
        for attempt in range(1, IN_USE_ATTEMPTS + 1):
            driver = self._driver(task, may_add=may_add)
            try:
                changed = self.reporter.report(
                    driver, task.name, task.uuid, failed=driver.save_written
                )
            except (InventoryInUse, ResourceProviderSyncFailed) as error:
                # A consumer claimed it after the driver read the usages; the next attempt reads
                # them again.
                if attempt == IN_USE_ATTEMPTS or not _is_in_use(error):
                    raise
            else:
                driver.save_settled()
                if may_add:
                    self._adopted.add(task.uuid)
                return Report(changed, task.kept + driver.kept)
        raise AssertionError("the last attempt returns or raises")

    def _preview(self, task: _Task) -> Report:
        driver = self._driver(task, read_only=True)
        changes = self.reporter.preview(driver, task.name, task.uuid)
        return Report(changes, task.kept + driver.kept)

    def _driver(
        self, task: _Task, *, read_only: bool = False, may_add: bool = True
    ) -> DeclarationDriver:
        # Without a record of it, an adoption would be forgotten.
        adopt = self._adopt and may_add and task.uuid not in self._adopted
        return DeclarationDriver(
            task.declaration,
            task.uuid,
            TreeOwnership(self._store, self._owner, self._server, adopt=adopt, read_only=read_only),
            self.reporter.placement,
            policy=task.policy,
            may_add=may_add,
        )

    def _without_unknown_traits(
        self, declaration: Declaration
    ) -> tuple[Declaration, tuple[str, ...]]:
        """The declaration without standard traits that the server does not know; a line for each.

        A host may be newer than its server, and is reported all the same.
        """
        traits = frozenset[str]().union(*(provider.traits for provider in declaration.providers))
        standard = {trait for trait in traits if not is_custom(trait)}
        unknown = self.reporter.known_names.unknown_traits(standard)
        if not unknown:
            return declaration, ()
        providers = (
            replace(provider, traits=provider.traits - unknown)
            for provider in declaration.providers
        )
        return replace(declaration, providers=tuple(providers)), tuple(
            f"trait {trait} is not written, the server does not know it: {UNKNOWN_TRAIT_ADVICE}"
            for trait in sorted(unknown)
        )


def _is_in_use(error: PlacementError) -> bool:
    cause = error.__cause__ if isinstance(error, ResourceProviderSyncFailed) else error
    return isinstance(cause, ResourceProviderInUse | InventoryInUse)
