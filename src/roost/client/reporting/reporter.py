"""The reporter: gives the tree of a host to a driver, and writes what the driver changed."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from inspect import Parameter

from roost.client.drivers.driver import Allocations, Driver, asks_for_reshape
from roost.client.errors import (
    InvalidResourceClass,
    PlacementError,
    PlacementReshapeConflict,
    ProviderExists,
    ReshapeFailed,
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
from roost.client.outcome import finding_out
from roost.client.placement import Placement
from roost.client.provider_tree import ProviderSubTree, ProviderTree
from roost.client.reading.cloud_reader import THREADS, CloudReader, demanding_existence
from roost.client.reporting.difference import difference
from roost.client.reporting.host_cache import HostCache, KnownNames
from roost.client.reporting.tree_writer import StepwiseWriter, TreeWriter
from roost.client.transport import Transport
from roost.model.identifiers import new_uuid
from roost.model.trees.difference import Difference

LOG = logging.getLogger(__name__)

REPORTED_AGAIN = (ResourceProviderUpdateConflict, PlacementReshapeConflict, WriteLost)
"""After these errors the reporter reads the tree, calls the driver and flushes again."""

FlushFailed = Callable[[ProviderTree, Exception], None]
"""Gets the tree with the steps that a flush has written, and the error that ended the flush."""

SYNC_FAILURES = (
    InvalidResourceClass,
    ResourceProviderDeletionFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateFailed,
    TraitCreationFailed,
    TraitRetrievalFailed,
)
"""These errors become `ResourceProviderSyncFailed`: an immediate repetition would fail as well."""


class Reporter:
    """Keeps the server's trees equal to what the drivers of the hosts report.

        reporter = Reporter(connect())
        reporter.report(MyDriver(), "compute-1").lines()

    The reporter caches trees for `refresh_seconds`. Then it compares generations, and reads the
    providers that have changed. After `reread_seconds` it reads the whole tree, because clients
    before 1.19 change aggregates without a new generation.

    One thread at a time uses a reporter. Reporters of several threads may share a transport and
    `known_names`. The reporter reads so many providers of a tree at once as `concurrency` says.
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
        concurrency: int = THREADS,
        known_names: KnownNames | None = None,
    ) -> None:
        self.placement = Placement(transport)
        reader = CloudReader(self.placement, concurrency)
        self.known_names = known_names or KnownNames(self.placement)
        self._writer = writer or StepwiseWriter(self.placement, reader, self.known_names)
        self._cache = HostCache(
            reader, refresh_seconds=refresh_seconds, reread_seconds=reread_seconds, clock=clock
        )
        self._attempts = attempts
        self._uuids: dict[str, str] = {}

    # -- a whole report

    def report(
        self,
        driver: Driver,
        nodename: str,
        uuid: str | None = None,
        *,
        reshape: bool = True,
        failed: FlushFailed | None = None,
    ) -> Difference:
        """Have the driver update the tree of a host, and write what has changed.

        The host is found by uuid or by name, and is created if it does not exist. Returns what
        was written. If `reshape` is false, a driver's `ReshapeNeeded` is raised. `failed` is
        called for each flush that ends half way, also if another attempt follows.
        """
        uuid = uuid or self.uuid_of(nodename)
        lost: WriteLost | None = None
        for attempt in range(1, self._attempts + 1):
            try:
                tree, allocations = self._drive(driver, nodename, uuid, reshape, lost)
                return self._flush(uuid, tree, allocations, failed)
            except REPORTED_AGAIN as error:
                LOG.info("%s: attempt %d of %d: %s", nodename, attempt, self._attempts, error)
                # After a failed write the flush has done so; after other conflicts nothing has.
                self._invalidate(uuid, error)
                is_unreadable = lost is not None and error.__cause__ is lost
                if attempt == self._attempts or is_unreadable:
                    raise
                lost = error if isinstance(error, WriteLost) else None
            except ResourceProviderCreationFailed:
                # Another provider may have the name by now.
                self._uuids.pop(nodename, None)
                raise
        raise AssertionError("the last attempt returns or raises")

    def preview(
        self, driver: Driver, nodename: str, uuid: str | None = None, *, reshape: bool = True
    ) -> Difference:
        """What `report` would change; nothing is written."""
        uuid = uuid or self.uuid_of(nodename)
        tree, _ = self._drive(driver, nodename, uuid, reshape)
        host = self._cache.get(uuid)
        assert host is not None, "the tree was fetched for the driver"
        return difference(host.tree, tree)

    def find(self, name: str) -> str | None:
        """The uuid of the provider with this name; `None` if there is none."""
        found = self.placement.providers_named(name)
        return found[0]["uuid"] if found else None

    def uuid_of(self, name: str, missing: Callable[[str], None] | None = None) -> str:
        """The uuid of a host: that of the provider with its name, or a new one.

        `missing` is called before a name gets a new uuid, and may raise an error instead.
        """
        if name not in self._uuids:
            found = self.find(name)
            if found is None and missing is not None:
                missing(name)
            self._uuids[name] = found or new_uuid()
        return self._uuids[name]

    # -- the steps of a report

    def fetch(
        self, uuid: str, name: str | None = None, parent_uuid: str | None = None
    ) -> ProviderTree:
        """A private copy of the tree of a provider, which is created if it does not exist.

        The sharing providers of the tree are lone roots in the copy.
        """
        tree = self._cache.fetch(uuid)
        if tree.exists(uuid):
            return tree
        self.forget(uuid)
        try:
            body = self.placement.create_provider(uuid, name or uuid, parent_uuid)
        except ProviderExists:
            LOG.info("provider %s was created by another writer just now", uuid)
        else:
            if parent_uuid is None:
                # A new root has no associations, so nothing is read.
                created = ProviderTree()
                created.new_root(body["name"], uuid, body["generation"])
                self._cache.put(uuid, created)
        tree = self._cache.fetch(uuid)
        if not tree.exists(uuid):
            raise ResourceProviderCreationFailed(
                f"Provider {uuid} was deleted by another writer just now: try again",
                provider_uuid=uuid,
            )
        return tree

    def flush(
        self, uuid: str, wanted: ProviderTree, allocations: Allocations | None = None
    ) -> Difference:
        """Write the difference to the tree that the last `fetch` of this host returned.

        Not atomic: the first error ends the flush. Earlier steps stay. After an error, fetch the
        tree again: the earlier copy cannot be flushed any more.
        """
        return self._flush(uuid, wanted, allocations, None)

    def allocations(self, uuid: str) -> Allocations:
        """All allocations of the consumers of a host's tree, those of other trees included."""
        host = self._cache.get(uuid)
        tree = host.tree if host is not None else self._cache.fetch(uuid)
        consumers = dict.fromkeys(
            consumer
            for member in (tree.get_provider_uuids_in_tree(uuid) if tree.exists(uuid) else ())
            for consumer in self._consumers_of(member)
        )
        found = {consumer: self.placement.allocations_of(consumer) for consumer in consumers}
        # A consumer that was deleted meanwhile has no allocations.
        return {consumer: body for consumer, body in found.items() if body.get("allocations")}

    def forget(self, uuid: str | None = None) -> None:
        """Drop the cached tree of a host, or of all hosts: it is read again when needed."""
        self._cache.forget(uuid)

    # -- inside

    def _consumers_of(self, uuid: str) -> list[str]:
        with demanding_existence(uuid):
            return list(self.placement.allocations(uuid))

    def _flush(
        self,
        uuid: str,
        wanted: ProviderTree,
        allocations: Allocations | None,
        failed: FlushFailed | None,
    ) -> Difference:
        host = self._cache.get(uuid)
        if host is None or wanted.origin != host.tree.origin:
            raise ResourceProviderUpdateConflict(
                f"The tree of {uuid} is not the one that the last fetch returned: fetch it again",
                provider_uuid=uuid,
            )
        plan = _plan(host.tree, wanted)
        if not plan and allocations is None:
            return plan
        try:
            self._writer.write(host.tree, wanted, plan, allocations)
        except BaseException as error:
            self._invalidate(uuid, error)
            if failed is not None and isinstance(error, Exception):
                failed(host.tree, error)
            if isinstance(error, SYNC_FAILURES):
                raise _sync_failure(error) from error
            raise
        host.tree.origin = wanted.origin = new_uuid()
        _take_generations(wanted, host.tree, plan)
        if allocations is not None:
            # A reshape moves the generations of providers in other trees as well.
            host.mark_stale()
        return plan

    def _invalidate(self, uuid: str, error: BaseException) -> None:
        """Have the tree read again after an error; all trees after a conflict of a reshape."""
        if isinstance(error, PlacementReshapeConflict):
            self.forget()
        else:
            self._cache.mark_stale(uuid, getattr(error, "provider_uuid", None))

    def _drive(
        self,
        driver: Driver,
        nodename: str,
        uuid: str,
        reshape: bool,
        lost: WriteLost | None = None,
    ) -> tuple[ProviderTree, Allocations | None]:
        """Have the driver update the tree, which tells what became of a lost write."""
        with finding_out(lost):
            tree = self._fetch_or_begin(uuid, nodename)
        try:
            driver.update_provider_tree(tree, nodename)
        except Exception as error:
            if not (reshape and asks_for_reshape(error)):
                raise
        else:
            return tree, None
        _demand_allocations(driver)
        # The driver may have edited the tree before it asked for the reshape.
        tree = self._fetch_or_begin(uuid, nodename)
        allocations = self.allocations(uuid)
        driver.update_provider_tree(tree, nodename, allocations=allocations)
        return tree, allocations

    def _fetch_or_begin(self, uuid: str, name: str) -> ProviderTree:
        """The host's tree, or a new one with a root that the flush will create."""
        tree = self._cache.fetch(uuid)
        if not tree.exists(uuid):
            tree.new_root(name, uuid)
        return tree


def _plan(known: ProviderTree, wanted: ProviderTree) -> Difference:
    if isinstance(wanted, ProviderSubTree):
        # A subtree has no sharing providers; their absence is no deletion.
        known = known.subtree(wanted.scope_rp_uuid)
    plan = difference(known, wanted)
    for ignored in plan.ignored:
        for line in ignored.lines():
            LOG.warning("%s", line)
    return plan


def _take_generations(wanted: ProviderTree, known: ProviderTree, plan: Difference) -> None:
    """Set the new generations, so that a flushed tree can be edited and flushed again."""
    for change in plan.changes:
        generation = known.data(change.uuid).generation
        wanted.update_inventory(change.uuid, wanted.data(change.uuid).inventory, generation)


def _demand_allocations(driver: Driver) -> None:
    """Raise an error if the driver asks for a reshape, but cannot take the allocations."""
    parameters = inspect.signature(driver.update_provider_tree).parameters
    takes_keywords = any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())
    if "allocations" not in parameters and not takes_keywords:
        raise ReshapeFailed(
            f"Driver {type(driver).__name__} raised ReshapeNeeded, but cannot take allocations to"
            " move: give its method the signature"
            " update_provider_tree(self, provider_tree, nodename, allocations=None)"
        )


def _sync_failure(error: PlacementError) -> ResourceProviderSyncFailed:
    return ResourceProviderSyncFailed(
        error.message,
        status=error.status,
        detail=error.detail,
        request_id=error.request_id,
        provider_uuid=error.provider_uuid,
    )
