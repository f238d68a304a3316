"""The reporter: hands a host's tree to a driver, and writes what the driver made of it."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from roost.client.drivers.driver import Allocations, Driver
from roost.client.errors import (
    InvalidResourceClass,
    PlacementError,
    PlacementReshapeConflict,
    ReshapeNeeded,
    ResourceProviderCreationFailed,
    ResourceProviderDeletionFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderSyncFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    TraitCreationFailed,
    TraitRetrievalFailed,
    WriteLost,
)
from roost.client.provider_tree import ProviderSubTree, ProviderTree
from roost.client.reporting.difference import Difference, difference
from roost.client.reporting.placement import Placement, ProviderBody, ProviderExists
from roost.client.reporting.reading import TreeReader, demanding_existence
from roost.client.reporting.writing import StepwiseWriter, TreeWriter
from roost.client.transport import Transport
from roost.model.identifiers import new_uuid

LOG = logging.getLogger(__name__)

# After these the tree is read again, the driver asked again and the difference written again.
CONFLICTS = (ResourceProviderUpdateConflict, PlacementReshapeConflict, WriteLost)

FlushFailed = Callable[[ProviderTree, Exception], None]
"""Is told what the server has as far as it was written, and what ended the flush."""

# These become `ResourceProviderSyncFailed`: repeating them at once would not help.
FAILURES = (
    InvalidResourceClass,
    ResourceProviderDeletionFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateFailed,
    TraitCreationFailed,
    TraitRetrievalFailed,
)


# A generation that no provider has, so that it is read again.
NO_GENERATION = -1


@dataclass(slots=True)
class _Host:
    """What the server was last known to have, and when that was read.

    What is `stale` is compared with the server before it is used again.
    """

    known: ProviderTree
    read_at: float
    reread_at: float
    stale: bool = False

    def doubt(self, provider_uuid: str | None = None) -> None:
        """Trust what is known no longer, and what is known of this provider not at all."""
        self.stale = True
        self.known.origin = new_uuid()
        if provider_uuid is not None and self.known.exists(provider_uuid):
            inventory = self.known.data(provider_uuid).inventory
            self.known.update_inventory(provider_uuid, inventory, NO_GENERATION)


class Reporter:
    """Keeps the server's picture of hosts equal to what their drivers say.

        reporter = Reporter(connect())
        reporter.report(MyDriver(), "compute-1").lines()

    What was read is believed for `refresh_seconds`; then generations are compared, and what has
    moved is read again; everything is after `reread_seconds`, because clients before 1.19 change
    aggregates without moving a generation.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        refresh_seconds: float = 300,
        reread_seconds: float = 3600,
        attempts: int = 4,
        clock: Callable[[], float] = time.monotonic,
        writer: TreeWriter | None = None,
    ) -> None:
        self.placement = Placement(transport)
        self._reader = TreeReader(self.placement)
        self._writer = writer or StepwiseWriter(self.placement, self._reader)
        self._refresh_seconds = refresh_seconds
        self._reread_seconds = reread_seconds
        self._attempts = attempts
        self._clock = clock
        self._hosts: dict[str, _Host] = {}
        self._uuids: dict[str, str] = {}

    # -- the whole way

    def report(
        self,
        driver: Driver,
        nodename: str,
        uuid: str | None = None,
        *,
        reshape: bool = True,
        failed: FlushFailed | None = None,
    ) -> Difference:
        """Ask the driver how the host looks and make the server's picture the same.

        The host is found by uuid, or by name; it is created if it is not there. Returns what
        was changed. A driver's `ReshapeNeeded` is let through if `reshape` is false. `failed` is
        told of each flush that ends half way, also if another attempt follows.
        """
        uuid = uuid or self.uuid_of(nodename)
        for attempt in range(1, self._attempts + 1):
            try:
                tree, allocations = self._drive(driver, nodename, uuid, reshape)
                return self._flush(uuid, tree, allocations, failed)
            except CONFLICTS as error:
                LOG.info("%s: attempt %d of %d: %s", nodename, attempt, self._attempts, error)
                self._doubt(uuid, error)
                if attempt == self._attempts:
                    raise
            except ResourceProviderCreationFailed:
                # The name may belong to another provider by now.
                self._uuids.pop(nodename, None)
                raise
        raise AssertionError("the last attempt returns or raises")

    def preview(
        self, driver: Driver, nodename: str, uuid: str | None = None, *, reshape: bool = True
    ) -> Difference:
        """What `report` would change; nothing is written."""
        uuid = uuid or self.uuid_of(nodename)
        tree, _ = self._drive(driver, nodename, uuid, reshape)
        return difference(self._hosts[uuid].known, tree)

    def find(self, name: str) -> str | None:
        """The uuid of the provider with this name."""
        found = self.placement.providers_named(name)
        return found[0]["uuid"] if found else None

    def uuid_of(self, name: str) -> str:
        """The uuid of a host: that under which it is known, or there, or will be created."""
        if name not in self._uuids:
            self._uuids[name] = self.find(name) or new_uuid()
        return self._uuids[name]

    # -- its parts

    def fetch(
        self, uuid: str, name: str | None = None, parent_uuid: str | None = None
    ) -> ProviderTree:
        """A private copy of the tree of a provider, which is created if it is not there.

        With the tree come the providers that share something with its members, as lone roots.
        """
        tree = self._fetch(uuid)
        if tree.exists(uuid):
            return tree
        self.forget(uuid)
        try:
            body = self.placement.create_provider(uuid, name or uuid, parent_uuid)
        except ProviderExists:
            LOG.info("provider %s was created by somebody else just now", uuid)
        else:
            if parent_uuid is None:
                self._begin(uuid, body)
        tree = self._fetch(uuid)
        if not tree.exists(uuid):
            raise ResourceProviderCreationFailed(
                f"Provider {uuid} was there just now and is gone: try again", provider_uuid=uuid
            )
        return tree

    def flush(
        self, uuid: str, wanted: ProviderTree, allocations: Allocations | None = None
    ) -> Difference:
        """Write what differs from what the last `fetch` of this host gave; returns that.

        Not atomic: the first error ends it, and what was written stays. The next fetch finds
        out what that was, and only the tree that it gives can be flushed then.
        """
        return self._flush(uuid, wanted, allocations, None)

    def allocations(self, uuid: str) -> Allocations:
        """All allocations of those who use the host's tree: consumer -> what it has, anywhere."""
        host = self._hosts.get(uuid)
        tree = host.known if host is not None else self._fetch(uuid)
        consumers = dict.fromkeys(
            consumer
            for member in (tree.get_provider_uuids_in_tree(uuid) if tree.exists(uuid) else ())
            for consumer in self._consumers_of(member)
        )
        found = {consumer: self.placement.allocations_of(consumer) for consumer in consumers}
        # Who has ended since has nothing to be moved.
        return {consumer: body for consumer, body in found.items() if body.get("allocations")}

    def forget(self, uuid: str | None = None) -> None:
        """Forget what is known of a host, or of all, so that it will be read again."""
        if uuid is None:
            self._hosts.clear()
        else:
            self._hosts.pop(uuid, None)

    # -- inside

    def _consumers_of(self, uuid: str) -> list[str]:
        with demanding_existence(uuid):
            return self.placement.consumers_of(uuid)

    def _flush(
        self,
        uuid: str,
        wanted: ProviderTree,
        allocations: Allocations | None,
        failed: FlushFailed | None,
    ) -> Difference:
        host = self._hosts.get(uuid)
        if host is None or wanted.origin != host.known.origin:
            raise ResourceProviderUpdateConflict(
                f"The tree of {uuid} has to be fetched before it is flushed, and this is not what "
                "the last fetch gave",
                provider_uuid=uuid,
            )
        plan = _plan(host.known, wanted)
        if not plan and allocations is None:
            return plan
        try:
            self._writer.write(host.known, wanted, plan, allocations)
        except BaseException as error:
            self._doubt(uuid, error)
            if failed is not None and isinstance(error, Exception):
                failed(host.known, error)
            if isinstance(error, FAILURES):
                raise _sync_failure(error) from error
            raise
        host.known.origin = wanted.origin = new_uuid()
        _take_generations(wanted, host.known, plan)
        if allocations is not None:
            # It moved generations of providers far and wide.
            host.doubt()
        return plan

    def _doubt(self, uuid: str, error: BaseException) -> None:
        if isinstance(error, PlacementReshapeConflict):
            self.forget()
        elif uuid in self._hosts:
            self._hosts[uuid].doubt(getattr(error, "provider_uuid", None))

    def _drive(
        self, driver: Driver, nodename: str, uuid: str, reshape: bool
    ) -> tuple[ProviderTree, Allocations | None]:
        tree = self._fetch_or_begin(uuid, nodename)
        try:
            driver.update_provider_tree(tree, nodename)
        except Exception as error:
            if not (reshape and _asks_for_reshape(error)):
                raise
        else:
            return tree, None
        # Whatever it did to the tree before it asked is not what it does now.
        tree = self._fetch_or_begin(uuid, nodename)
        allocations = self.allocations(uuid)
        # Drivers that never reshape need not take this argument, so the protocol does not have it.
        driver.update_provider_tree(tree, nodename, allocations=allocations)  # type: ignore[call-arg]
        return tree, allocations

    def _fetch_or_begin(self, uuid: str, name: str) -> ProviderTree:
        """The host's tree, or the first provider of one that the flush will create."""
        tree = self._fetch(uuid)
        if not tree.exists(uuid):
            tree.new_root(name, uuid)
        return tree

    def _begin(self, uuid: str, body: ProviderBody) -> None:
        """Know a root that was created just now: nothing hangs on it, so nothing is read."""
        known = ProviderTree()
        known.new_root(body["name"], uuid, body["generation"])
        self._know(uuid, known)

    def _fetch(self, uuid: str) -> ProviderTree:
        now = self._clock()
        host = self._hosts.get(uuid)
        if host is None or now - host.reread_at >= self._reread_seconds > 0:
            self._know(uuid, self._reader.read(uuid))
        elif host.stale or now - host.read_at >= self._refresh_seconds > 0:
            self._know(uuid, self._reader.read(uuid, host.known), host.reread_at)
        return copy.deepcopy(self._hosts[uuid].known)

    def _know(self, uuid: str, tree: ProviderTree, reread_at: float | None = None) -> None:
        now = self._clock()
        tree.origin = new_uuid()
        self._hosts[uuid] = _Host(tree, now, now if reread_at is None else reread_at)


def _plan(known: ProviderTree, wanted: ProviderTree) -> Difference:
    if isinstance(wanted, ProviderSubTree):
        # It says nothing about the providers that share with the tree.
        known = known.subtree(wanted.scope_rp_uuid)
    plan = difference(known, wanted)
    for ignored in plan.ignored:
        for line in ignored.lines():
            LOG.warning("%s", line)
    return plan


def _take_generations(wanted: ProviderTree, known: ProviderTree, plan: Difference) -> None:
    """Let a tree that was flushed be edited and flushed again."""
    for change in plan.changes:
        generation = known.data(change.uuid).generation
        wanted.update_inventory(change.uuid, wanted.data(change.uuid).inventory, generation)


def _asks_for_reshape(error: BaseException) -> bool:
    """Whether this is `ReshapeNeeded`, ours or that of the service the driver was written for."""
    return isinstance(error, ReshapeNeeded) or any(
        kind.__name__ == ReshapeNeeded.__name__ for kind in type(error).__mro__
    )


def _sync_failure(error: PlacementError) -> ResourceProviderSyncFailed:
    return ResourceProviderSyncFailed(
        error.message,
        status=error.status,
        detail=error.detail,
        request_id=error.request_id,
        provider_uuid=error.provider_uuid,
    )
