"""Running servers: Roost, the reference, and the static server."""

from __future__ import annotations

import http.client
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from databases import Database
from processes import cpu_seconds, forget_peaks, worker_memory
from server import Program, Server, reference, roost

CONNECTIONS = 4
TIMEOUT_SECONDS = 300
# Servers silently close connections that are idle for longer.
IDLE_SECONDS = 5
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class RequestFailed(Exception):
    """A server did not answer, or answered with an error."""


class Client:
    """One connection, kept alive if the server keeps it."""

    def __init__(self, name: str, port: int, keep_alive: bool, token: str) -> None:
        self._name = name
        self._headers = {**HEADERS, "X-Auth-Token": token}
        self._keep_alive = keep_alive
        self._used_at = 0.0
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)

    def send(
        self, method: str, path: str, body: Any = None, more_headers: Mapping[str, str] = NO_HEADERS
    ) -> tuple[int, bytes]:
        """Send one request and return the status and the body of the answer."""
        headers, data = {**self._headers, **more_headers}, None
        if body is not None:
            data = json.dumps(body).encode()
            headers = {**headers, "Content-Type": "application/json"}
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self._connection.close()
        try:
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise RequestFailed(f"{self._name}: {method} {path}: {error!r}") from error
        if not self._keep_alive:
            self._connection.close()
        self._used_at = time.monotonic()
        return response.status, answer

    def request(
        self, method: str, path: str, body: Any = None, more_headers: Mapping[str, str] = NO_HEADERS
    ) -> bytes:
        """Send one request that has to succeed and return the body of the answer."""
        status, answer = self.send(method, path, body, more_headers)
        if status >= 300:
            raise RequestFailed(f"{self._name}: {method} {path}: {status} {answer[:500]!r}")
        return answer

    def get(self, path: str) -> bytes:
        """The body at a path."""
        return self.request("GET", path)


@dataclass
class Target:
    """A running server."""

    name: str
    port: int
    process_id: int
    keep_alive: bool = True
    token: str = HEADERS["X-Auth-Token"]
    _clients: Iterator[Client] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # With several connections, every worker gets a share of the requests.
        self._clients = itertools.cycle([self.connect() for _ in range(CONNECTIONS)])

    def connect(self) -> Client:
        """A new connection, for the caller only."""
        return Client(self.name, self.port, self.keep_alive, self.token)

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """Send a request that has to succeed, on the next connection in turn."""
        return next(self._clients).request(method, path, body)

    def get(self, path: str, more_headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """The body at a path, on the next connection in turn."""
        return next(self._clients).request("GET", path, None, more_headers)

    def cpu_seconds(self) -> float:
        """The CPU that the server's processes have used so far."""
        return cpu_seconds(self.process_id)

    def memory(self) -> int:
        """Resident bytes of a worker."""
        return worker_memory(self.process_id)

    def peak_memory(self) -> int:
        """The peak of a worker's resident bytes."""
        return worker_memory(self.process_id, "VmHWM")

    def forget_peak(self) -> None:
        """Let the peak begin anew, so that it tells of the requests from now on."""
        forget_peaks(self.process_id)


def roost_program(executable: Path, workers: int) -> Program:
    """Roost with this number of workers."""
    return _with_option(roost(executable), "--workers", workers)


def reference_program(workers: int) -> Program:
    """The reference with this number of processes."""
    return _with_option(reference(), "--processes", workers)


def static_program(python: Path, workers: int, directory: Path) -> Program:
    """The server of Roost, sending the files of a directory."""
    script = Path(__file__).with_name("static_server.py")

    def command(_config_file: Path, port: int) -> list[str]:
        return [*(str(python), str(script)), *(str(port), str(workers), str(directory))]

    return Program("static", command)


def _with_option(program: Program, option: str, value: int) -> Program:
    """The program, with this value for one of its options."""

    def command(config_file: Path, port: int) -> list[str]:
        words = program.command(config_file, port)
        words[words.index(option) + 1] = str(value)
        return words

    return replace(program, command=command)


@contextmanager
def running(
    program: Program, database_url: str, home: Path, token: str = HEADERS["X-Auth-Token"]
) -> Iterator[Target]:
    """Run a server on a database that has its tables. Its clients send the token."""
    # Both services write to disk before they acknowledge a write.
    options = {"placement_database": {"sqlite_synchronous": "true"}}
    database = Database(program.name, database_url, empty=False)
    with Server(program, database, home, options, {}) as server:
        assert server.process_id is not None
        # uwsgi closes every connection after its first answer, without a header to say so.
        keep_alive = program.name != "reference"
        yield Target(program.name, server.port, server.process_id, keep_alive, token)
