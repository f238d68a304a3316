"""A client that costs its process little: one socket, and bytes that are ready to be sent."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

from targets import HEADERS, RequestFailed, Target

TIMEOUT_SECONDS = 60
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def encode(method: str, path: str, body: Any = None) -> bytes:
    """A request with the headers of an administrator, as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    data = b""
    if body is not None:
        data = json.dumps(body).encode()
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode() + data


class HttpConnection:
    """One connection. `http.client` takes about five times its CPU for a small request."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket = self._connect()

    def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return the status and the body of the answer."""
        try:
            self._socket.sendall(request)
            answer = self._receive()
        except OSError as error:
            line = request.split(b"\r\n", 1)[0].decode()
            raise RequestFailed(f"{self._target.name}: {line}: {error!r}") from error
        if not self._target.keep_alive:
            self._socket.close()
            self._socket = self._connect()
        return answer

    def _connect(self) -> socket.socket:
        connected = socket.create_connection(("127.0.0.1", self._target.port), TIMEOUT_SECONDS)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def _receive(self) -> tuple[int, bytes]:
        received = b""
        while (head_end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        status = int(received[9:12])
        found = _LENGTH.search(received, 0, head_end + 2)
        if found is None and status != 204:
            raise RequestFailed(f"{self._target.name}: {status} without a length")
        end = head_end + 4 + (int(found[1]) if found else 0)
        pieces, size = [received], len(received)
        while size < end:
            pieces.append(self._more())
            size += len(pieces[-1])
        return status, b"".join(pieces)[head_end + 4 :]

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server has closed the connection")
        return data
