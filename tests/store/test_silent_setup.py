"""A server that accepts a client and then is silent, like a pooler before a frozen server."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from roost.store.connections.errors import DatabaseAway, DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import connect_or_explain

# The messages of PostgreSQL: no password is necessary, the version, ready.
WELCOME = (
    b"R" + struct.pack("!ii", 8, 0) + b"S\x00\x00\x00\x18server_version\x0015.0\x00"
    b"Z" + struct.pack("!i", 5) + b"I"
)


@pytest.fixture
def mute_server() -> Iterator[int]:
    """The port of a server that accepts clients and answers no statement."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def welcome() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                kept.append(client)
                size = struct.unpack("!i", client.recv(4))[0]
                if struct.unpack("!i", client.recv(4))[0] == 80877103:
                    # The client asks for encryption first.
                    client.sendall(b"N")
                    size = struct.unpack("!i", client.recv(4))[0]
                    client.recv(4)
                client.recv(size - 8)
                client.sendall(WELCOME)

        threading.Thread(target=welcome, daemon=True).start()
        yield listener.getsockname()[1]
        for client in kept:
            client.close()


def database_at(port: int) -> Database:
    url = f"postgresql://postgres@127.0.0.1:{port}/placement"
    return Database(DatabaseOptions(url=url, wait_seconds=1, silence_seconds=1))


def test_a_read_over_a_new_connection_fails_in_time(mute_server: int) -> None:
    database = database_at(mute_server)
    for _ in range(2):
        with pytest.raises(DatabaseAway):
            database.read(lambda connection: connection.exec_driver_sql("SELECT 1"))


def test_a_start_fails_in_time(mute_server: int) -> None:
    with pytest.raises(DatabaseUnusable):
        connect_or_explain(database_at(mute_server), 1, 1)
