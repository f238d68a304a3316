"""Applying a declaration of several trees: what belongs to one tree is declared together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.owning.owner import Owner, Report
from roost.client.owning.records import Records
from roost.client.reporting.placement import Placement
from roost.model.identifiers import new_uuid


@dataclass(frozen=True, slots=True)
class Part:
    """What of a declaration belongs to one tree of the server, or begins a new one.

    `name` and `uuid` are those of a provider in the tree, `root_uuid` that of its root.
    """

    name: str
    uuid: str
    root_uuid: str
    declaration: Declaration

    def apply(self, owner: Owner, *, dry_run: bool) -> Report:
        """Make it true, or say what that would change."""
        act = owner.preview if dry_run else owner.declare
        report = act(self.declaration, self.name, self.uuid)
        # Nobody asks for it again, and there may be thousands of trees.
        owner.reporter.forget(self.uuid)
        return report


def parts(placement: Placement, declaration: Declaration) -> list[Part]:
    """The declaration by trees of the server, in the order of their first mention.

    A provider without parent in the declaration may be anywhere in a tree on the server.
    """
    found: dict[str, tuple[DeclaredProvider, str, list[DeclaredProvider]]] = {}
    for tree in declaration.trees().values():
        root = tree.providers[0]
        uuid, root_uuid = _locate(placement, root)
        _, _, members = found.setdefault(root_uuid, (root, uuid, []))
        members += tree.providers
    return [
        Part(first.name, uuid, root_uuid, Declaration(tuple(members)))
        for root_uuid, (first, uuid, members) in found.items()
    ]


def undeclared_parts(
    placement: Placement, records: Records, declared: Collection[Part]
) -> Iterator[Part]:
    """A part that declares nothing for each tree that was declared before and is not now.

    Trees that the server does not have are left out, but still remembered: this may just be
    another server than the one on which they were declared.
    """
    trees = {part.root_uuid for part in declared}
    for root_uuid in records.trees():
        if root_uuid in trees:
            continue
        provider = placement.provider(root_uuid)
        # A tree that was put below another one since then is a part of that.
        if provider is not None and provider["root_provider_uuid"] not in trees:
            yield Part(provider["name"], root_uuid, root_uuid, Declaration(()))


def _locate(placement: Placement, provider: DeclaredProvider) -> tuple[str, str]:
    """The uuid of a provider, and of the root of the tree that it is in or begins."""
    if provider.uuid is not None:
        found = placement.provider(provider.uuid)
        return provider.uuid, found["root_provider_uuid"] if found else provider.uuid
    for named in placement.providers_named(provider.name):
        return named["uuid"], named["root_provider_uuid"]
    uuid = new_uuid()
    return uuid, uuid
