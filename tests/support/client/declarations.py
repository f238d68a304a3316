"""Short constructors of declarations and ownership records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.store import InMemoryOwnershipStore, OwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Transport
from roost.model.trees.declaration import (
    Declaration,
    DeclaredProvider,
    InventoryFields,
    UnreadProviders,
)
from support.client.provider_trees import uuid_of

OWNER_TRAIT = "CUSTOM_ROOST_OWNER_ME"
EMPTY = OwnershipRecord()


def declaration(*providers: DeclaredProvider) -> Declaration:
    """A declaration of these providers."""
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


def owned(
    name: str,
    *,
    created: bool = False,
    inventories: Mapping[str, Iterable[str]] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
) -> OwnedProvider:
    """The owned part of one provider. Inventories list the names of owned fields."""
    fields = {key: frozenset(value) for key, value in (inventories or {}).items()}
    return OwnedProvider(name, created, fields, frozenset(traits), frozenset(aggregates))


def created(
    name: str,
    *,
    inventories: Mapping[str, Iterable[str]] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
) -> OwnedProvider:
    """The owned part of a provider that the owner created, with the owner's trait."""
    return owned(
        name,
        created=True,
        inventories=inventories,
        traits={OWNER_TRAIT, *traits},
        aggregates=aggregates,
    )


def record_of(*providers: OwnedProvider) -> OwnershipRecord:
    """The record of a tree with these providers."""
    return OwnershipRecord({uuid_of(provider.name): provider for provider in providers})


def kept_providers(report: Report) -> list[str]:
    """The name of the provider in each line of `report.kept`."""
    return [line.partition(": ")[0] for line in report.kept]


class HostOwner:
    """An owner that declares one host, with a reporter of its own."""

    def __init__(
        self,
        transport: Transport,
        host: str,
        owner: str = "agent",
        store: OwnershipStore | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        self.host = host
        self.transport = transport
        self.store = store or InMemoryOwnershipStore()
        self._reporter = DeclarativeReporter(Reporter(transport), owner, self.store, adopt=adopt)

    def declare(self, *providers: DeclaredProvider, uuid: str | None = None) -> Report:
        return self._reporter.declare(declaration(*providers), self.host, uuid)

    def preview(self, *providers: DeclaredProvider, uuid: str | None = None) -> Report:
        return self._reporter.preview(declaration(*providers), self.host, uuid)


class FindingDriver:
    """A driver that finds the providers that a test sets, and cannot read some of them."""

    def __init__(self, *found: DeclaredProvider) -> None:
        self.found = found
        self.unread = UnreadProviders()
        self.declares_intent = False

    def declare(self, nodename: str) -> Declaration:
        return Declaration(self.found, self.unread)
