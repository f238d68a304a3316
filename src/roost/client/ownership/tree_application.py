"""Declared trees are made true, several at a time; a tree that fails holds up no other one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event

from roost.client.errors import (
    NotConfigured,
    PlacementAPIConnectFailure,
    PlacementError,
    RecordsUnavailable,
    ResourceProviderRetrievalFailed,
    TraitRetrievalFailed,
    TransportFailed,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.store import OwnershipStore
from roost.client.placement import Placement
from roost.client.reading.lookup import ProviderFinder
from roost.client.reading.parallel import in_order
from roost.client.reporting.host_cache import KnownNames
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Transport
from roost.model.identifiers import new_uuid
from roost.model.trees.declaration import Declaration, DeclaredProvider


@dataclass(frozen=True, slots=True)
class TreeDeclaration:
    """The part of a declaration that belongs to one tree of the server, or begins a new tree.

    `name` and `uuid` are those of a provider in the tree, `root_uuid` is that of its root.
    """

    name: str
    uuid: str
    root_uuid: str
    declaration: Declaration

    def apply(self, reporter: DeclarativeReporter, *, dry_run: bool) -> Report:
        """Make the declaration true, or report what that would change."""
        act = reporter.preview if dry_run else reporter.declare
        try:
            return act(self.declaration, self.name, self.uuid)
        finally:
            # One command may apply thousands of trees, and needs each of them once.
            reporter.reporter.forget(self.uuid)


def tree_declarations(placement: Placement, declaration: Declaration) -> list[TreeDeclaration]:
    """The declaration divided by trees of the server, in the order of their first provider.

    A provider that is declared without parent may have one on the server.
    """
    found: dict[str, tuple[DeclaredProvider, str, list[DeclaredProvider]]] = {}
    trees = declaration.trees().values()
    finder = ProviderFinder(placement, len(trees))
    for tree in trees:
        root = tree.providers[0]
        uuid, root_uuid = _locate(finder, root)
        _, _, members = found.setdefault(root_uuid, (root, uuid, []))
        members += tree.providers
    return [
        TreeDeclaration(first.name, uuid, root_uuid, Declaration(tuple(members)))
        for root_uuid, (first, uuid, members) in found.items()
    ]


def withdrawals(
    placement: Placement,
    store: OwnershipStore,
    declared: Collection[TreeDeclaration],
    server: KnownServer,
) -> Iterator[TreeDeclaration]:
    """An empty declaration for each tree that has a record and is no longer declared.

    A tree that the server does not have is left out, and so is a record of another server: both
    keep their records.
    """
    trees = {tree.root_uuid for tree in declared}
    recorded = [
        root_uuid
        for root_uuid in store.trees()
        if root_uuid not in trees and not _is_elsewhere(store, root_uuid, server)
    ]
    finder = ProviderFinder(placement, len(recorded))
    for uuid in recorded:
        provider = finder.with_uuid(uuid)
        # A root that was moved below another tree belongs to that tree. Two threads that write one
        # tree would lose a part of its record.
        if provider is not None and provider["root_provider_uuid"] not in trees:
            root_uuid = provider["root_provider_uuid"]
            trees.add(root_uuid)
            yield TreeDeclaration(provider["name"], uuid, root_uuid, Declaration(()))


def _is_elsewhere(store: OwnershipStore, root_uuid: str, server: KnownServer) -> bool:
    """Whether the record of a tree belongs to another server."""
    try:
        record = store.load(root_uuid)
    except (NotConfigured, RecordsUnavailable):
        # A damaged record is an error of its own tree.
        return False
    return record is not None and server.is_another(record)


def _locate(finder: ProviderFinder, provider: DeclaredProvider) -> tuple[str, str]:
    """The uuid of a provider, and that of the root of its tree."""
    if provider.uuid is not None:
        found = finder.with_uuid(provider.uuid)
        return provider.uuid, found["root_provider_uuid"] if found else provider.uuid
    named = finder.named(provider.name)
    if named is not None:
        return named["uuid"], named["root_provider_uuid"]
    uuid = new_uuid()
    return uuid, uuid


_READ_FAILURES = (ResourceProviderRetrievalFailed, TraitRetrievalFailed)


@dataclass(frozen=True, slots=True)
class AppliedTree:
    """A tree with its report, or with the error that ended its report."""

    tree: TreeDeclaration
    report: Report | None = None
    error: PlacementError | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the server may have carried out the write that failed."""
        if self.error is None or isinstance(self.error.__cause__ or self.error, _READ_FAILURES):
            return False
        return outcome_of(self.error) is Outcome.UNKNOWN

    @property
    def may_succeed_later(self) -> bool:
        """Whether the tree may have failed because of other trees that were written meanwhile."""
        return self.error is not None and not isinstance(self.error, TransportFailed)

    @property
    def ends_all(self) -> bool:
        """Whether every tree would fail with the same error."""
        error = self.error
        return isinstance(error, PlacementAPIConnectFailure) or (
            error is not None and error.status == 401
        )


class TreeApplication:
    """Applies or compares trees as one owner.

    `jobs` is the number of requests under way at a time. Trees are independent, so each has a
    thread; fewer trees than jobs share out the rest among the reads of each tree. Once `stop` is
    set, no further tree begins.
    """

    def __init__(
        self,
        transport: Transport,
        owner: str,
        store: OwnershipStore,
        *,
        jobs: int,
        adopt: bool = False,
        dry_run: bool = False,
        stop: Event | None = None,
        server: KnownServer | None = None,
    ) -> None:
        self._transport = transport
        self._owner = owner
        self._store = store
        self._jobs = jobs
        self._adopt = adopt
        self.dry_run = dry_run
        self._stop = stop or Event()
        self._is_hopeless = Event()
        self._failed: list[AppliedTree] = []
        self._known_names = KnownNames(Placement(transport))
        self._server = server or KnownServer(Placement(transport))

    @property
    def failures(self) -> int:
        """The number of trees that have failed so far, before a second attempt."""
        return len(self._failed)

    def apply(
        self, declared: Sequence[TreeDeclaration], withdrawn: Sequence[TreeDeclaration] = ()
    ) -> Iterator[AppliedTree]:
        """Each tree in order, as soon as it and those before it are done; withdrawn ones follow.

        A tree that fails may need a name that another tree still has, and some servers fail if
        several clients write at once. So such a tree comes last, after a second attempt alone.
        The iteration ends early if `stop` is set, or if no tree can succeed.
        """
        for trees in (declared, withdrawn):
            for applied in self._attempted(trees):
                if applied.error is None:
                    yield applied
                else:
                    self._failed.append(applied)
        again = not self.dry_run and len(declared) + len(withdrawn) > 1
        for applied in self._failed:
            waits = again and applied.may_succeed_later
            yield next(self._attempted([applied.tree]), applied) if waits else applied

    def _attempted(self, trees: Sequence[TreeDeclaration]) -> Iterator[AppliedTree]:
        """Each tree in order after one attempt, without those that were not begun."""
        threads = max(1, min(self._jobs, len(trees)))
        reporters: SimpleQueue[DeclarativeReporter] = SimpleQueue()
        for _ in range(threads):
            reporters.put(self._reporter(max(1, self._jobs // threads)))

        def attempt(tree: TreeDeclaration) -> AppliedTree | None:
            if self._stop.is_set() or self._is_hopeless.is_set():
                return None
            reporter = reporters.get()
            try:
                return AppliedTree(tree, tree.apply(reporter, dry_run=self.dry_run))
            except PlacementError as error:
                applied = AppliedTree(tree, error=error)
                if applied.ends_all:
                    self._is_hopeless.set()
                return applied
            finally:
                reporters.put(reporter)

        yield from (applied for applied in in_order(trees, attempt, threads) if applied is not None)

    def _reporter(self, concurrency: int) -> DeclarativeReporter:
        """A reporter for one thread; all share what is known of the server."""
        reporter = Reporter(self._transport, concurrency=concurrency, known_names=self._known_names)
        return DeclarativeReporter(
            reporter, self._owner, self._store, adopt=self._adopt, server=self._server
        )
