"""A client with one kept connection, which notes what became of every request."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from support.servers.haproxy import SERVER_HEADER

_TIMEOUT_SECONDS = 60
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_SERVER = re.compile(rb"\r\n" + SERVER_HEADER.encode() + rb": *(\w+)", re.IGNORECASE)


class InDoubt(Exception):
    """No answer came, or one that does not say whether the request was carried out."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: what it was, when, and its status; 0 if no answer came."""

    method: str
    began: float
    ended: float
    status: int
    server: str
    problem: str = ""

    @property
    def failed(self) -> bool:
        """Whether the client got no answer, or that of a server or proxy that failed."""
        return self.status == 0 or self.status >= 500

    @property
    def is_write(self) -> bool:
        """Whether the request would have changed something."""
        return self.method != "GET"


@dataclass
class Records:
    """The requests of all clients of a run."""

    sent: list[Sent] = field(default_factory=list)
    # The moment at which the request of each client began, while it waits for its answer.
    waiting: dict[int, float] = field(default_factory=dict)

    def between(self, start: float, end: float) -> list[Sent]:
        """The requests that ended in this time."""
        return [one for one in self.sent if start <= one.ended < end]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class HttpClient:
    """Sends requests over one connection, and opens another one after a failure."""

    def __init__(self, port: int, records: Records) -> None:
        self._port = port
        self._records = records
        self._socket: socket.socket | None = None
        # The server that gave the last answer.
        self.server = ""

    def get(self, path: str) -> Answer:
        """The answer to a GET. A client repeats a read that failed, because that is safe."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                return self.send("GET", path)
            except InDoubt:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def send(self, method: str, path: str, body: Any = None) -> Answer:
        """The answer to a request that is sent once; `InDoubt` if there is none, or 5xx."""
        began = time.monotonic()
        me = threading.get_ident()
        self._records.waiting[me] = began
        status, server, problem, data = 0, "", "", b""
        try:
            status, server, data = self._exchange(_encode(method, path, body))
        except OSError as error:
            problem = repr(error)
            self.close()
        finally:
            self._records.waiting.pop(me, None)
        if status >= 500:
            problem = data[:300].decode(errors="replace")
        sent = Sent(method, began, time.monotonic(), status, server, problem)
        self._records.sent.append(sent)
        self.server = server
        if sent.failed:
            raise InDoubt(f"{method} {path}: {status} {problem}")
        return Answer(status, data)

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None

    def _exchange(self, request: bytes) -> tuple[int, str, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        status = int(received[9:12])
        head, body = received[: end + 2], received[end + 4 :]
        length = _LENGTH.search(head)
        while length and len(body) < int(length[1]):
            body += self._more()
        if _CLOSE.search(head):
            self.close()
        server = _SERVER.search(head)
        return status, server[1].decode() if server else "", body

    def _more(self) -> bytes:
        assert self._socket is not None
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the connection ended before the answer")
        return data


def _encode(method: str, path: str, body: Any) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: placement",
        "X-Auth-Token: admin",
        "OpenStack-API-Version: placement 1.39",
    ]
    data = b""
    if body is not None:
        data = json.dumps(body).encode()
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode() + data
