"""A proxy in front of a database server that ends a session at a chosen message of its client."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from enum import Enum
from typing import Any

import psycopg
import pymysql
from sqlalchemy.engine import URL, make_url

from support.servers.database_proxy import DatabaseProxy

_SECONDS_MAX = 60
# PostgreSQL: the type of `ReadyForQuery`, and the length of the message.
_READY = b"Z\0\0\0\x05"
_READY_LENGTH = 6
_OPEN_SECONDS = 0.05


class SessionEnd(Enum):
    """How a session ends, seen from the message of the client."""

    CUT_BEFORE = "the message is lost, and the connection too"
    CUT_AFTER = "the server gets the message, and its answer is lost"
    KILLED_BEFORE = "the server ends the session, and then gets the message"
    KILLED_WITH = "the server ends the session while it works on the message"
    KILLED_AFTER = "the server answers and ends the session"
    KILLED_AT_LAST = "the server ends the session before it says that the answer is complete"


class EndingProxy(DatabaseProxy):
    """Ends one session of the database at the n-th message that any client sends.

    What a client sends until the server answers is one message, however many packets it takes.
    """

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        url = make_url(database_url)
        is_postgresql = url.get_backend_name() == "postgresql"
        self._sessions = _PostgresqlSessions(url) if is_postgresql else _MysqlSessions(url)
        self._end: SessionEnd | None = None
        self._messages_left = 0
        self._port: int | None = None
        # The sockets to the server of clients that wait for an answer.
        self._waiting: set[socket.socket] = set()
        # Sessions that end with the next answer of the server, by their sockets to the server.
        self._answers: dict[socket.socket, SessionEnd] = {}

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._sessions.close()

    def end_session(self, end: SessionEnd, message: int) -> None:
        """End the session that sends the message with this number from now on, the first is 1."""
        with self._changed:
            self._end, self._messages_left, self._port = end, message, None

    def settle(self) -> bool:
        """Wait until the server has left the session; whether there was a session to end."""
        self._end = None
        if self._port is None:
            return False
        deadline = time.monotonic() + _SECONDS_MAX
        while self._sessions.has(self._port):
            assert time.monotonic() < deadline, "the server keeps the session"
            time.sleep(0.002)
        return True

    def _pump(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        passes = self._from_client if from_client else self._from_server
        with suppress(OSError):
            while data := source.recv(65536):
                if not passes(source, target, data):
                    break
        for open_socket in (source, target):
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
        with self._changed:
            self._sockets.discard(source)
        source.close()

    def _from_client(self, _client: socket.socket, server: socket.socket, data: bytes) -> bool:
        end = self._end_of_this_message(server)
        if end is SessionEnd.CUT_BEFORE:
            return False
        if end is SessionEnd.KILLED_BEFORE:
            self._kill(server)
        elif end is SessionEnd.KILLED_WITH:
            threading.Thread(target=self._kill, args=(server,), daemon=True).start()
        elif end is not None:
            self._answers[server] = end
        with suppress(OSError):
            server.sendall(data)
        return True

    def _kill(self, server: socket.socket) -> None:
        """Let the server end the session. One that has not begun yet is cut instead."""
        with suppress(OSError):
            if not self._sessions.kill(server.getsockname()[1]):
                server.shutdown(socket.SHUT_RDWR)

    def _end_of_this_message(self, server: socket.socket) -> SessionEnd | None:
        with self._changed:
            if server in self._waiting:
                return None
            self._waiting.add(server)
            self._messages_left -= 1
            if self._end is None or self._messages_left:
                return None
            self._port = server.getsockname()[1]
            return self._end

    def _from_server(self, server: socket.socket, client: socket.socket, data: bytes) -> bool:
        self._waiting.discard(server)
        end = self._answers.pop(server, None)
        if end is SessionEnd.CUT_AFTER:
            return False
        if end is None:
            client.sendall(data)
            return True
        self._kill(server)
        with suppress(OSError):
            while more := server.recv(65536):
                data += more
        if end is SessionEnd.KILLED_AT_LAST and _READY in data:
            at = data.rindex(_READY)
            data = data[:at] + data[at + _READY_LENGTH :]
        client.sendall(data)
        # A while in which the client has the last words of the server, and cannot see the end.
        time.sleep(_OPEN_SECONDS)
        return False


class _PostgresqlSessions:
    """The sessions of a PostgreSQL server, by the ports of their clients."""

    def __init__(self, url: URL) -> None:
        plain = url.set(drivername="postgresql").render_as_string(False)
        self._connection = psycopg.connect(plain, autocommit=True)

    def kill(self, port: int) -> bool:
        """End the session; whether the server has it."""
        return bool(self._rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity", port))

    def has(self, port: int) -> bool:
        """Whether the server has the session."""
        return bool(self._rows("SELECT pid FROM pg_stat_activity", port))

    def close(self) -> None:
        """Close the connection that asks."""
        self._connection.close()

    def _rows(self, query: str, port: int) -> list[tuple[object, ...]]:
        condition = "WHERE client_port = %s AND datname = current_database()"
        return self._connection.execute(f"{query} {condition}", (port,)).fetchall()


class _MysqlSessions:
    """The sessions of a MariaDB server, by the ports of their clients."""

    def __init__(self, url: URL) -> None:
        self._connection = pymysql.connect(
            host=url.host or "", port=url.port or 0, user=url.username, autocommit=True
        )
        self._lock = threading.Lock()

    def kill(self, port: int) -> bool:
        """End the session; whether the server has it."""
        found = self._ids(port)
        for id_ in found:
            with suppress(pymysql.err.OperationalError), self._lock:
                self._connection.query(f"KILL CONNECTION {id_}")
        return bool(found)

    def has(self, port: int) -> bool:
        """Whether the server has the session."""
        return bool(self._ids(port))

    def close(self) -> None:
        """Close the connection that asks."""
        self._connection.close()

    def _ids(self, port: int) -> list[int]:
        with self._lock, self._connection.cursor() as cursor:
            query = "SELECT id FROM information_schema.processlist WHERE host LIKE %s"
            cursor.execute(query, (f"%:{port}",))
            return [int(id_) for (id_,) in cursor.fetchall()]
