"""Declarations and what is owned, in a line each, for tests of several writers on one tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.owning.owner import Owner, Report
from roost.client.owning.ownership import Owned, OwnedProvider
from roost.client.owning.records import MemoryRecords, Records
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Transport
from support.forest import uuid_of

MARK = "CUSTOM_OWNER_ME"
NOTHING = Owned()


def declaration(*providers: DeclaredProvider) -> Declaration:
    """A declaration of these."""
    return Declaration(providers)


def declared(
    name: str,
    below: str | None = None,
    *,
    uuid: str | None = None,
    inventories: Mapping[str, InventoryFields] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
) -> DeclaredProvider:
    """One provider of a declaration."""
    return DeclaredProvider(
        name, below, uuid, inventories or {}, frozenset(traits), frozenset(aggregates)
    )


def mine(
    name: str,
    *,
    created: bool = False,
    inventories: Mapping[str, Iterable[str]] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
) -> OwnedProvider:
    """What is owned of one provider; of inventories the names of fields."""
    fields = {key: frozenset(value) for key, value in (inventories or {}).items()}
    return OwnedProvider(name, created, fields, frozenset(traits), frozenset(aggregates))


def created(
    name: str,
    *,
    inventories: Mapping[str, Iterable[str]] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
) -> OwnedProvider:
    """What is owned of a provider that the owner created; the mark as well."""
    return mine(
        name,
        created=True,
        inventories=inventories,
        traits={MARK, *traits},
        aggregates=aggregates,
    )


def owning(*providers: OwnedProvider) -> Owned:
    """What is owned of a tree."""
    return Owned({uuid_of(provider.name): provider for provider in providers})


class Writer:
    """An owner on one host, with a reporter of its own."""

    def __init__(
        self,
        transport: Transport,
        host: str,
        owner: str = "agent",
        records: Records | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        self.host = host
        self.records = records or MemoryRecords()
        self._owner = Owner(Reporter(transport), owner, self.records, adopt=adopt)

    def declare(self, *providers: DeclaredProvider, uuid: str | None = None) -> Report:
        return self._owner.declare(declaration(*providers), self.host, uuid)

    def preview(self, *providers: DeclaredProvider, uuid: str | None = None) -> Report:
        return self._owner.preview(declaration(*providers), self.host, uuid)
