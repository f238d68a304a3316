"""Rebinding: an operator says that records of one server are those of another one."""

from __future__ import annotations

from roost.client.errors import NotConfigured
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.recorded_server import RecordedServer
from roost.client.ownership.store import OwnershipStore
from roost.client.transport.http import canonical_url


def records_of_server(store: OwnershipStore, former: str) -> dict[str, OwnershipRecord]:
    """The records that belong to a server, by its address or its identity; an error without any."""
    name = _canonical(former)
    found: dict[str, OwnershipRecord] = {}
    servers: set[str] = set()
    for root_uuid in store.trees():
        record = store.load(root_uuid)
        if record is None or record.server is None:
            continue
        servers.add(str(record.server))
        if name in (record.server.url, record.server.identity):
            found[root_uuid] = record
    if not found:
        known = ", ".join(sorted(servers)) or "no server yet"
        raise NotConfigured(f"No record belongs to {former}; all belong to {known}")
    return found


def rebind(
    store: OwnershipStore, records: dict[str, OwnershipRecord], server: RecordedServer
) -> None:
    """Have the records belong to this server from now on."""
    for root_uuid, record in records.items():
        store.save(root_uuid, record.bound(server))


def _canonical(server: str) -> str:
    return canonical_url(server) if "://" in server else server
