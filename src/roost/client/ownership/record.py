"""The ownership record: which providers, inventories, traits and aggregates an owner put there.

An owner owns a provider that it created. It owns an inventory, a trait or an aggregate that its
declaration added or changed. What another writer put there first belongs to that writer, even if
the owner declares the same.

The same tree may be on several servers, for instance on a production server and on its copy in a
lab. A record tells what its owner put on one of them. A server of Roost has an identity, which a
copy of its database shares. So the address counts, too. Other servers have the address alone, and
the project of the token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.trees.declaration import Declaration, DeclaredProvider


@dataclass(frozen=True, slots=True)
class RecordedServer:
    """A server by its identity, its address, and the project of the owner; each if it is known."""

    identity: str | None = None
    url: str | None = None
    project_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.identity or self.url)

    def __str__(self) -> str:
        """The address, or else the identity.

        >>> str(RecordedServer("0b6a", "http://host:8778")), str(RecordedServer("0b6a"))
        ('http://host:8778', '0b6a')
        """
        return self.url or self.identity or "an unknown server"

    def is_another(self, second: RecordedServer) -> bool:
        """Whether this server and a second one differ in what is known of both.

        >>> lab = RecordedServer("0b6a", "http://lab")
        >>> lab.is_another(RecordedServer("0b6a", "http://prod")), lab.is_another(RecordedServer())
        (True, False)
        """
        if _differ(self.identity, second.identity) or _differ(self.url, second.url):
            return True
        has_identity = self.identity is not None and second.identity is not None
        return not has_identity and _differ(self.project_id, second.project_id)

    def completed(self, before: RecordedServer) -> RecordedServer:
        """This server, with what is known only from before.

        >>> RecordedServer(None, "http://host").completed(RecordedServer("0b6a")).identity
        '0b6a'
        """
        return RecordedServer(
            self.identity or before.identity,
            self.url or before.url,
            self.project_id or before.project_id,
        )

    def difference(self, recorded: RecordedServer) -> str:
        """Why a record of another server is refused, and what the operator may do."""
        if not _differ(self.identity, recorded.identity) and self.identity and recorded.identity:
            return (
                "Both have the same identity: this is the same server at a new address, or a copy "
                "of its database. If it is the same server, rebind the records"
            )
        if not _differ(self.url, recorded.url):
            return (
                "Another server answers at the same address. If it has taken over the providers "
                "of the earlier one, rebind the records"
            )
        return "If it is the same server, or has taken over its providers, rebind the records"


def _differ(first: str | None, second: str | None) -> bool:
    return first is not None and second is not None and first != second


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


def rendered_record(record: OwnershipRecord) -> dict[str, Any]:
    """The record as a JSON value."""
    body = {"providers": {uuid: _rendered(owned) for uuid, owned in record.providers.items()}}
    return body if record.server is None else body | {"server": asdict(record.server)}


def parsed_record(body: Mapping[str, Any]) -> OwnershipRecord:
    """The record of a JSON value; errors of Python tell that it is none."""
    return OwnershipRecord(
        {uuid: _parsed(owned) for uuid, owned in body["providers"].items()},
        _parsed_server(body["server"]) if "server" in body else None,
    )


def _rendered(owned: OwnedProvider) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": owned.name,
        "created": owned.created,
        "inventories": {name: sorted(fields) for name, fields in owned.inventories.items()},
        "traits": sorted(owned.traits),
        "aggregates": sorted(owned.aggregates),
    }
    return body if owned.absence is None else body | {"absence": asdict(owned.absence)}


def _parsed(body: Mapping[str, Any]) -> OwnedProvider:
    return OwnedProvider(
        body["name"],
        bool(body["created"]),
        {name: frozenset(fields) for name, fields in body["inventories"].items()},
        frozenset(body["traits"]),
        frozenset(body["aggregates"]),
        _parsed_absence(body["absence"]) if "absence" in body else None,
    )


def _parsed_server(body: Mapping[str, Any]) -> RecordedServer:
    values = (body[key] for key in ("identity", "url", "project_id"))
    return RecordedServer(*(None if value is None else str(value) for value in values))


def _parsed_absence(body: Mapping[str, Any]) -> Absence:
    since, last, seconds = (float(body[key]) for key in ("since", "last", "seconds"))
    absence = Absence(int(body["reports"]), since, last, seconds)
    # With a time that is no number, the provider would be missing for ever.
    if not math.isfinite(since + last + seconds):
        raise ValueError("the time of an absence is no number")
    return absence
