"""A proxy before a live server, with planned faults of the kinds that networks have."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias

from support.waiting import SECONDS_MAX


class Fault(Enum):
    """The treatment of a request."""

    CONFLICT = auto()
    """409 because of a concurrent update; never forwarded. Only for requests with a generation."""
    UNAVAILABLE = auto()
    """503; never forwarded."""
    HANG_UP = auto()
    """The connection is closed; never forwarded."""
    LOST_ANSWER = auto()
    """Forwarded; the connection is closed instead of an answer."""
    GATEWAY_TIMEOUT = auto()
    """Forwarded; 504 instead of the answer."""
    INTERNAL_ERROR = auto()
    """Forwarded; 500 instead of the answer."""
    GARBLED = auto()
    """Forwarded; the answer is not one of a placement server."""
    SLOW = auto()
    """The connection is closed; forwarded later, just before the client's next request."""
    LATE = auto()
    """The connection is closed; forwarded later, just after the client's next request."""


Interlude: TypeAlias = Callable[[], None]
"""An action of another client, just before the proxy forwards the request.

The proxy leaves it out while a deletion is on its way. A deletion carries no generation, so no
client can protect what another client adds after its last look.
"""

Step: TypeAlias = Fault | Interlude | None


@dataclass(frozen=True)
class Message:
    """A request or an answer."""

    start: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_write(self) -> bool:
        return self.start[0] != "GET"

    @property
    def has_generation(self) -> bool:
        method, path = self.start
        return method == "PUT" and path.startswith("/resource_providers/")

    @property
    def is_deletion(self) -> bool:
        return self.start[0] == "DELETE"


class FaultyProxy:
    """Treats each request as the next step of the plan says. After the plan, it only forwards.

    Reads and writes have separate plans, because clients may read in parallel.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._reads: deque[Step] = deque()
        self._writes: deque[Step] = deque()
        self._held: list[tuple[Fault, Message]] = []
        self._under_way = 0
        self._changed = threading.Condition()
        self._listener = _Listener(self)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown()
        self._thread.join()
        self._listener.drop_connections()
        self._listener.server_close()

    def plan(self, reads: Iterable[Step] = (), writes: Iterable[Step] = ()) -> None:
        """Replace the plan for the next requests."""
        with self._changed:
            self._reads = deque(reads)
            self._writes = deque(writes)

    def settle(self) -> None:
        """Wait until no request is under way, and forward the requests that were held back."""
        with self._changed:
            idle = self._changed.wait_for(lambda: self._under_way == 0, SECONDS_MAX)
            assert idle, "a client still waits for an answer"
            held, self._held = self._held, []
        for _, message in held:
            self._forward(message)

    # -- for the handlers

    @contextmanager
    def request_under_way(self) -> Iterator[None]:
        """The time from the first byte of a request until the client has the answer or hangs up."""
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def treat(self, message: Message) -> Message | Fault:
        """The answer to a request, or the fault that withholds it."""
        with self._changed:
            plan = self._writes if message.is_write else self._reads
            step = plan.popleft() if plan else None
            held, self._held = self._held, []
        if step is Fault.CONFLICT and not message.has_generation:
            step = Fault.UNAVAILABLE
        if callable(step) and any(
            each.is_deletion for each in (message, *(earlier for _, earlier in held))
        ):
            step = None
        for fault, earlier in held:
            if fault is Fault.SLOW:
                self._forward(earlier)
        outcome = self._carry_out(step, message)
        for fault, earlier in held:
            if fault is Fault.LATE:
                self._forward(earlier)
        return outcome

    def _carry_out(self, step: Step, message: Message) -> Message | Fault:
        if isinstance(step, Fault):
            return self._go_wrong(step, message)
        if step is not None:
            step()
        return self._forward(message)

    def _go_wrong(self, fault: Fault, message: Message) -> Message | Fault:
        if fault in (Fault.SLOW, Fault.LATE):
            with self._changed:
                self._held.append((fault, message))
        if fault in _FORWARDED:
            self._forward(message)
        return _ANSWERS.get(fault, fault)

    def _forward(self, message: Message) -> Message:
        connection = http.client.HTTPConnection("127.0.0.1", self._server_port, timeout=SECONDS_MAX)
        try:
            method, path = message.start
            connection.request(method, path, message.body or None, dict(message.headers))
            answer = connection.getresponse()
            return Message((str(answer.status),), dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


class _Listener(ThreadingHTTPServer):
    # `server_close` waits for these threads, so that no thread outlives its test.
    daemon_threads = False

    def __init__(self, proxy: FaultyProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy
        self._open: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        """End all idle connections, so that no handler waits for another request."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A buffer sends each answer as a whole. Parts would wait for acknowledgements.
    wbufsize = -1
    server: _Listener

    def _handle(self) -> None:
        with self.server.proxy.request_under_way():
            length = int(self.headers.get("Content-Length", "0"))
            sent = {name: value for name, value in self.headers.items() if name not in _HOP_BY_HOP}
            message = Message((self.command, self.path), sent, self.rfile.read(length))
            outcome = self.server.proxy.treat(message)
            if isinstance(outcome, Message):
                self._answer(outcome)
            else:
                self._hang_up()

    do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 -- the names that are called

    def _answer(self, message: Message) -> None:
        self.send_response_only(int(message.start[0]))
        for name, value in message.headers.items():
            if name.title() not in _HOP_BY_HOP:
                self.send_header(name, value)
        if message.start[0] != "204":
            self.send_header("Content-Length", str(len(message.body)))
        self.end_headers()
        self.wfile.write(message.body)
        # The client may have given up meanwhile.
        with suppress(OSError):
            self.wfile.flush()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


_HOP_BY_HOP = frozenset({"Connection", "Content-Length", "Host", "Keep-Alive", "Transfer-Encoding"})

_CONCURRENT_UPDATE = {
    "status": 409,
    "title": "Conflict",
    "detail": "the proxy pretends that another client was faster",
    "code": "placement.concurrent_update",
}

_FORWARDED = (Fault.LOST_ANSWER, Fault.GATEWAY_TIMEOUT, Fault.INTERNAL_ERROR, Fault.GARBLED)

_ANSWERS = {
    Fault.CONFLICT: Message(
        ("409",),
        {"Content-Type": "application/json"},
        json.dumps({"errors": [_CONCURRENT_UPDATE]}).encode(),
    ),
    Fault.UNAVAILABLE: Message(("503",), {"Content-Type": "text/plain"}, b"not now"),
    Fault.GATEWAY_TIMEOUT: Message(
        ("504",), {"Content-Type": "text/plain"}, b"the proxy pretends a timeout"
    ),
    Fault.INTERNAL_ERROR: Message(("500",), {"Content-Type": "text/plain"}, b"oops"),
    Fault.GARBLED: Message(("200",), {"Content-Type": "text/html"}, b"<p>Welcome!"),
}
