"""The audit: what is wrong with a cloud, and the request that mends it.

An orphan is a consumer that holds resources, although the program that made it no longer knows it.
Only that program has the list of its consumers, so the caller sends the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from roost.model.consumers import UNKNOWN_CONSUMER_TYPE
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.inventory import DEFAULTS
from roost.search.forest.faults import (
    find_over_capacity,
    find_uncleaned,
    find_unreachable_sharing,
)
from roost.search.forest.forest import Forest
from roost.service.errors import Conflict, ErrorCode, NotFound
from roost.service.tables.claims import ConsumerMark, release_unchanged
from roost.service.tables.inventories import list_inventories
from roost.store.rows.consumers import AuditedConsumer, audited_pages, find_consumer
from roost.store.rows.providers import NamedProvider, named_pages
from roost.store.transaction import Finished, Transaction

ONE_TIME_USE = "HW_PCI_ONE_TIME_USE"

# The address of a PCI function in the name of a provider: 0000:81:00.0, or with underscores as
# libvirt names devices.
_PCI_ADDRESS = re.compile(
    r"(?<![0-9a-f])([0-9a-f]{4})[:_]([0-9a-f]{2})[:_]([0-9a-f]{2})[._]([0-7])(?![0-9a-f])", re.I
)


class FindingKind(StrEnum):
    """What is wrong, in the order in which an audit lists it."""

    ORPHAN = "orphan"
    OVER_CAPACITY = "over_capacity"
    NEEDS_CLEANING = "needs_cleaning"
    SAME_DEVICE_TWICE = "same_device_twice"
    UNREACHABLE_SHARING = "unreachable_sharing"
    EMPTY_CONSUMER = "empty_consumer"


_RANKS = {kind: rank for rank, kind in enumerate(FindingKind)}


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is wrong with a provider or a consumer."""

    kind: FindingKind
    provider_uuid: str | None = None
    consumer: str | None = None
    # What tells whether the consumer is still the one that the audit saw.
    mark: ConsumerMark | None = None
    # What else the sentence names.
    resource_class: str = ""
    used: int = 0
    capacity: int = 0
    also: str = ""

    @property
    def key(self) -> str:
        """The place of the finding in the list of all findings."""
        subject = self.provider_uuid or self.consumer
        return f"{_RANKS[self.kind]}.{subject}.{self.resource_class}"

    def text(self, name: str) -> str:
        """One sentence for people; `name` is that of the provider."""
        match self.kind:
            case FindingKind.ORPHAN:
                return f"Consumer {self.consumer} holds resources, but is not a known consumer."
            case FindingKind.OVER_CAPACITY:
                return (
                    f"Consumers hold {self.used:,} {self.resource_class} of {name}, "
                    f"whose capacity is {self.capacity:,}."
                )
            case FindingKind.NEEDS_CLEANING:
                return f"{name} is for one use, was used, and waits to be cleaned."
            case FindingKind.SAME_DEVICE_TWICE:
                return f"{name} and {self.also} are the same PCI device of one host."
            case FindingKind.UNREACHABLE_SHARING:
                return f"{name} shares its inventory, but no other tree is in its aggregates."
            case FindingKind.EMPTY_CONSUMER:
                return f"Consumer {self.consumer} exists, but holds nothing."


@dataclass(frozen=True, slots=True)
class KnownConsumers:
    """The consumers that a program knows: all of these types, or of every type if there is none."""

    uuids: AbstractSet[str]
    types: AbstractSet[str]
    # Consumers that changed later may be missing in the list.
    known_at: datetime | None

    @classmethod
    def of(
        cls, uuids: Iterable[str], types: Iterable[str], known_at: datetime | None
    ) -> KnownConsumers:
        """The consumers with these uuids, however they are spelt."""
        # Some databases keep whole seconds: a fraction would make a new consumer seem older.
        since = None if known_at is None else known_at.replace(microsecond=0)
        return cls(frozenset(map(_canonical, uuids)), frozenset(types), since)

    def misses(self, consumer: AuditedConsumer) -> bool:
        """Whether the consumer should be among them and is not."""
        if self.types and consumer.consumer_type not in self.types:
            return False
        changed = consumer.changed_at
        if self.known_at is not None and changed is not None and changed >= self.known_at:
            return False
        return _canonical(consumer.uuid) not in self.uuids


@dataclass(frozen=True, slots=True)
class AuditedRows:
    """What an audit finds in the tables, and how many consumers there are."""

    findings: Sequence[AuditFinding]
    consumer_count: int


def audit_rows(
    connection: Connection, pause: Callable[[], None], known: KnownConsumers | None
) -> AuditedRows:
    """What is wrong with consumers, and with the names of providers."""
    findings: list[AuditFinding] = []
    count = 0
    for page in audited_pages(connection):
        count += len(page)
        findings += _wrong_consumers(page, known)
        pause()
    findings += _same_devices(connection, pause)
    return AuditedRows(findings, count)


def audit_forest(forest: Forest, one_time_use: Collection[str]) -> Iterator[AuditFinding]:
    """What is wrong with inventories and sharing providers."""
    names = forest.vocabulary.class_names
    for over in find_over_capacity(forest):
        yield AuditFinding(
            FindingKind.OVER_CAPACITY,
            over.provider_uuid,
            resource_class=names.get(over.class_id, "of a resource class"),
            used=over.used,
            capacity=over.capacity,
        )
    for uuid in find_uncleaned(forest, one_time_use):
        yield AuditFinding(FindingKind.NEEDS_CLEANING, uuid)
    for uuid in find_unreachable_sharing(forest):
        yield AuditFinding(FindingKind.UNREACHABLE_SHARING, uuid)


def check_orphan_share(orphans: int, consumers: int, at_most_percent: float) -> None:
    """Refuse to delete so many consumers that the list of known ones must be wrong."""
    if orphans * 100 > consumers * at_most_percent:
        raise Conflict(
            f"{orphans} of {consumers} consumers are orphans, more than {at_most_percent} "
            "percent. Nothing was deleted. Look whether known_consumers is complete; then send a "
            "higher at_most_percent.",
            ErrorCode.TOO_MANY_ORPHANS,
        )


def delete_orphans(transaction: Transaction, orphans: Sequence[AuditFinding]) -> Finished[set[str]]:
    """Delete the consumers that have not changed since the audit; returns which were deleted."""
    marks = [orphan.mark for orphan in orphans if orphan.mark]
    return release_unchanged(transaction, marks)


def mend_of(connection: Connection, finding: AuditFinding) -> dict[str, Any] | None:
    """The request that mends what was found; `None` if an operator has to decide.

    It is read now, so it has the present generation.
    """
    match finding.kind:
        case FindingKind.NEEDS_CLEANING:
            assert finding.provider_uuid is not None, "it is about a provider"
            return _unreserving(connection, finding.provider_uuid)
        case FindingKind.EMPTY_CONSUMER:
            assert finding.consumer is not None, "it is about a consumer"
            return _emptying(connection, finding.consumer)
        case _:
            return None


def _emptying(connection: Connection, uuid: str) -> dict[str, Any] | None:
    """The claim of nothing, after which the consumer does not exist any more."""
    consumer = find_consumer(connection, uuid)
    if consumer is None:
        return None
    body = {
        "allocations": {},
        "project_id": consumer.project,
        "user_id": consumer.user,
        "consumer_generation": consumer.generation,
        # A route takes no consumer without a type, and writes no type of an emptied one.
        "consumer_type": consumer.consumer_type or UNKNOWN_CONSUMER_TYPE.upper(),
    }
    return {"method": "PUT", "path": f"/allocations/{consumer.uuid}", "body": body}


def _unreserving(connection: Connection, uuid: str) -> dict[str, Any] | None:
    """The request after the cleaning: nothing of the provider is reserved any more."""
    try:
        found = list_inventories(connection, uuid)
    except NotFound:
        return None
    inventories: dict[str, Any] = {}
    for name, inventory in found.inventories.items():
        inventories[name] = {
            "total": inventory.total,
            **{field: getattr(inventory, field) for field in DEFAULTS},
            "reserved": 0,
        }
    return {
        "method": "PUT",
        "path": f"/resource_providers/{uuid}/inventories",
        "body": {"resource_provider_generation": found.generation, "inventories": inventories},
    }


def _wrong_consumers(
    page: Sequence[AuditedConsumer], known: KnownConsumers | None
) -> Iterator[AuditFinding]:
    for consumer in page:
        if not consumer.holds:
            kind = FindingKind.EMPTY_CONSUMER
        elif known is not None and known.misses(consumer):
            kind = FindingKind.ORPHAN
        else:
            continue
        yield AuditFinding(kind, consumer=consumer.uuid, mark=ConsumerMark.of(consumer))


def _same_devices(connection: Connection, pause: Callable[[], None]) -> Iterator[AuditFinding]:
    """Providers of one tree with the same PCI address in their names, apart from their parts."""
    first_of: dict[tuple[int, str], NamedProvider] = {}
    keys: dict[int, tuple[int, str]] = {}
    for page in named_pages(connection):
        for provider in page:
            match = _PCI_ADDRESS.search(provider.name)
            if match is None:
                continue
            key = provider.root_id, "-".join(match.groups()).lower()
            keys[provider.id] = key
            first = first_of.setdefault(key, provider)
            is_part = keys.get(provider.parent_id or 0) == key or first.parent_id == provider.id
            if first is not provider and not is_part:
                yield AuditFinding(FindingKind.SAME_DEVICE_TWICE, provider.uuid, also=first.name)
        pause()


def _canonical(uuid: str) -> str:
    return canonical_uuid(uuid) if is_uuid(uuid) else uuid
