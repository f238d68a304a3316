"""The server that an owner reports to: asked once, and compared with that of each record."""

from __future__ import annotations

import logging
import shlex
from threading import Lock

from roost.client.errors import (
    NotConfigured,
    RecordsOfAnotherServer,
    ResourceProviderRetrievalFailed,
)
from roost.client.ownership.record import OwnershipRecord, RecordedServer
from roost.client.ownership.store import FileOwnershipStore, OwnershipStore
from roost.client.placement import Placement
from roost.client.placement.answers import require_ok
from roost.client.transport.http import canonical_url

PATH = "/roost/server"
_UNAUTHORIZED = 401
_SERVER_ERROR = 500

_LOG = logging.getLogger(__name__)


class KnownServer:
    """The server of a placement. Reporters of several threads may share it."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._found: RecordedServer | None = None
        self._has_told = False
        self._lock = Lock()

    def get(self) -> RecordedServer:
        """The server, asked for its identity at the first call."""
        with self._lock:
            if self._found is None:
                address = self._placement.address()
                self._found = RecordedServer(
                    self._identity(),
                    address.url if address else None,
                    address.project_id if address else None,
                )
            return self._found

    def is_another(self, record: OwnershipRecord) -> bool:
        """Whether a record belongs to another server."""
        return record.server is not None and record.server.is_another(self.get())

    def demand(self, store: OwnershipStore, owner: str, root_uuid: str) -> OwnershipRecord | None:
        """The stored record of a tree, if there is one; that of another server is refused.

        A record of no server is taken over, and a line says so once.
        """
        record = store.load(root_uuid)
        if record is None:
            return None
        if record.server is None:
            self._tell_taken_over(owner)
        elif record.server.is_another(self.get()):
            raise self._refusal(store, owner, root_uuid, record.server)
        return record

    def taken(self, record: OwnershipRecord, before: RecordedServer | None) -> OwnershipRecord:
        """The record, bound to this server."""
        server = self.get().completed(before or RecordedServer())
        return record.bound(server if server else None)

    def _identity(self) -> str | None:
        """The identity; servers other than Roost have none."""
        answer = self._placement.read_any(PATH)
        if answer.status == _UNAUTHORIZED or answer.status >= _SERVER_ERROR:
            require_ok(answer, ResourceProviderRetrievalFailed, f"Cannot read {PATH}")
        return _identity_in(answer.parsed()) if answer.ok else None

    def _tell_taken_over(self, owner: str) -> None:
        server = self.get()
        with self._lock:
            has_told, self._has_told = self._has_told, True
        if server and not has_told:
            _LOG.warning(
                "Ownership records of %s do not say which server they belong to, because an older "
                "version wrote them. Each is bound to the server of its next report, now %s",
                owner,
                server,
            )

    def _refusal(
        self, store: OwnershipStore, owner: str, root_uuid: str, recorded: RecordedServer
    ) -> RecordsOfAnotherServer:
        server = self.get()
        error = RecordsOfAnotherServer(
            f"The ownership record of tree {root_uuid} belongs to {_described(recorded)}, and this "
            f"is {_described(server)}. {server.difference(recorded)}; for any other server, choose "
            "another directory with --records"
        )
        command = f"roost owner rebind {owner} --from {recorded}"
        if server.url:
            command += f" --url {server.url}"
        if isinstance(store, FileOwnershipStore):
            command += f" --records {shlex.quote(str(store.place))}"
        error.next_command = command
        return error


def _identity_in(body: object) -> str | None:
    identity = body.get("identity") if isinstance(body, dict) else None
    return identity if isinstance(identity, str) else None


def _described(server: RecordedServer) -> str:
    """The server with all that tells it from others.

    >>> _described(RecordedServer("0b6a", "http://host", "p1"))
    'http://host (identity 0b6a)'
    """
    more = [f"identity {server.identity}"] if server.identity and server.url else []
    if not server.identity and server.project_id:
        more.append(f"project {server.project_id}")
    return str(server) + (f" ({', '.join(more)})" if more else "")


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
