"""A declaration of several trees, divided by the trees that the server has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import NotConfigured, RecordsUnavailable
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.store import OwnershipStore
from roost.client.placement import Placement
from roost.client.provider_finder import ProviderFinder
from roost.model.identifiers import new_uuid


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
