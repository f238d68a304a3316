"""The ownership record: which providers, inventories, traits and aggregates an owner put there.

An owner owns a provider that it created. It owns an inventory, a trait or an aggregate that its
declaration added or changed. What another writer put there first belongs to that writer, even if
the owner declares the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.ownership.child_uuids import child_uuid
from roost.client.ownership.recorded_server import RecordedServer
from roost.client.provider_tree import ProviderData, ProviderTree


@dataclass(frozen=True, slots=True)
class Absence:
    """How long a driver has not found a provider; times are seconds since the epoch."""

    reports: int
    """The number of reports in a row without the provider."""
    since: float
    last: float
    """The times of the first and of the last of these reports."""
    seconds: float = 0.0
    """How long the absence counts; a clock that is set does not make it longer or shorter."""

    @classmethod
    def counted(cls, before: Absence | None, now: float, longest_gap: float) -> Absence:
        """The absence after a report at this time. One report may count several times.

        The time since the report before counts up to `longest_gap`: the clock may have been set,
        or the machine may have been off.

        >>> Absence.counted(Absence(1, since=100, last=100), now=160, longest_gap=150)
        Absence(reports=2, since=100, last=160, seconds=60.0)
        >>> Absence.counted(Absence(1, since=100, last=100), now=90000, longest_gap=150).seconds
        150.0
        """
        if before is None:
            return cls(1, now, now)
        if before.last == now:
            return before
        gap = min(max(now - before.last, 0.0), longest_gap)
        return cls(before.reports + 1, min(before.since, now), now, before.seconds + gap)


@dataclass(frozen=True, slots=True)
class OwnedProvider:
    """What an owner owns of one provider; if the owner `created` it, the provider as well.

    Of an inventory the owner owns the fields that it declared: resource class -> names of fields.
    `absence` is `None` as long as the driver finds the provider.
    """

    name: str
    created: bool = False
    inventories: Mapping[str, frozenset[str]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    absence: Absence | None = None

    def __bool__(self) -> bool:
        return bool(self.created or self.inventories or self.traits or self.aggregates)

    def united(self, second: OwnedProvider) -> OwnedProvider:
        """What this record of a provider and a second one claim together."""
        classes = self.inventories.keys() | second.inventories.keys()
        nothing: frozenset[str] = frozenset()
        return OwnedProvider(
            self.name,
            self.created or second.created,
            {
                name: self.inventories.get(name, nothing) | second.inventories.get(name, nothing)
                for name in classes
            },
            self.traits | second.traits,
            self.aggregates | second.aggregates,
            self.absence or second.absence,
        )


@dataclass(frozen=True, slots=True)
class OwnershipRecord:
    """What an owner owns of one tree, by the uuid of the provider, and on which server.

    `server` is `None` in a record of an older version.
    """

    providers: Mapping[str, OwnedProvider] = field(default_factory=dict)
    server: RecordedServer | None = None

    @classmethod
    def of_providers(cls, providers: Mapping[str, OwnedProvider]) -> OwnershipRecord:
        """A record of those providers of which the owner owns something."""
        return cls({uuid: provider for uuid, provider in providers.items() if provider})

    def united(self, second: OwnershipRecord) -> OwnershipRecord:
        """The providers of this record and of a second one."""
        both = {
            uuid: self.provider(uuid, owned.name).united(owned)
            for uuid, owned in second.providers.items()
        }
        return replace(self, providers={**self.providers, **both})

    def only(self, uuids: Set[str]) -> OwnershipRecord:
        """What is owned of these providers."""
        kept = {uuid: owned for uuid, owned in self.providers.items() if uuid in uuids}
        return replace(self, providers=kept)

    def without(self, uuids: Set[str]) -> OwnershipRecord:
        """What is owned of all providers but these."""
        return self.only(self.providers.keys() - uuids)

    def bound(self, server: RecordedServer | None) -> OwnershipRecord:
        """The same record of this server."""
        return replace(self, server=server)

    def provider(self, uuid: str, name: str) -> OwnedProvider:
        """What is owned of a provider; empty if the record does not have the provider."""
        return self.providers.get(uuid, OwnedProvider(name))


def recovered_record(
    tree: ProviderTree, root_uuid: str, declaration: Declaration, owner_trait: str
) -> OwnershipRecord:
    """The record of an owner that has lost it: what it declares on providers with its trait.

    Anything else on these providers may belong to another writer. Sharing providers are in other
    trees, which have records of their own.
    """
    declared = {provider.uuid or provider.name: provider for provider in declaration.providers}
    owned = {}
    for provider in _providers_with({owner_trait}, tree, root_uuid):
        wanted = declared.get(provider.uuid) or declared.get(provider.name)
        wanted = wanted or DeclaredProvider(provider.name)
        owned[provider.uuid] = OwnedProvider(
            provider.name,
            created=True,
            inventories={
                name: frozenset(fields)
                for name, fields in wanted.inventories.items()
                if name in provider.inventory
            },
            traits=frozenset(provider.traits & (wanted.traits | {owner_trait})),
            aggregates=frozenset(provider.aggregates & wanted.aggregates),
        )
    return OwnershipRecord(owned)


def reclaimed_record(
    tree: ProviderTree,
    host_uuid: str,
    declaration: Declaration,
    owner_trait: str,
    record: OwnershipRecord,
) -> OwnershipRecord:
    """The record, and declared children of the owner that it lacks: they were in another tree.

    Their uuids follow from the host and the owner, so no other writer created them.
    """
    children = {
        child_uuid(host_uuid, owner_trait, provider.name)
        for provider in declaration.providers
        if provider.parent is not None
    }
    root_uuid = tree.get_provider_uuids_in_tree(host_uuid)[0]
    recovered = recovered_record(tree, root_uuid, declaration, owner_trait)
    return record.united(recovered.only(children - record.providers.keys()))


def adopted_record(
    tree: ProviderTree,
    root_uuid: str,
    declaration: Declaration,
    marks: Set[str],
    record: OwnershipRecord,
) -> OwnershipRecord:
    """The record, and all that is on declared providers and on those with a mark of the owner."""
    providers = dict(record.providers)
    addresses = (provider.uuid or provider.name for provider in declaration.providers)
    declared = [tree.data(address) for address in addresses if tree.exists(address)]
    for provider in (*declared, *_providers_with(marks, tree, root_uuid)):
        recorded = record.provider(provider.uuid, provider.name)
        created = recorded.created or not marks.isdisjoint(provider.traits)
        providers[provider.uuid] = _everything_on(provider, created)
    return OwnershipRecord(providers)


def _providers_with(marks: Set[str], tree: ProviderTree, root_uuid: str) -> Iterator[ProviderData]:
    for uuid in tree.get_provider_uuids_in_tree(root_uuid):
        provider = tree.data(uuid)
        if not marks.isdisjoint(provider.traits):
            yield provider


def _everything_on(provider: ProviderData, created: bool) -> OwnedProvider:
    return OwnedProvider(
        provider.name,
        created,
        {name: frozenset(fields) for name, fields in provider.inventory.items()},
        frozenset(provider.traits),
        frozenset(provider.aggregates),
    )
