"""A client that sends exactly the bytes that a test gives."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from support.api_client import Answer
from support.servers.live_server import NARROW_BYTES
from support.waiting import SECONDS_MAX


class RawClient:
    """A client with one connection. For a narrow one, the kernel keeps few bytes."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None, *, narrow: bool = False):
        self.socket = socket.socket()
        self.socket.settimeout(SECONDS_MAX)
        if narrow:
            for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                self.socket.setsockopt(socket.SOL_SOCKET, buffer, NARROW_BYTES)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect(("127.0.0.1", port))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, *parts: bytes, pause: float = 0.05) -> None:
        """Send the parts in packets of their own."""
        for number, part in enumerate(parts):
            if number:
                time.sleep(pause)
            self.socket.sendall(part)

    def answer(self, method: str = "GET") -> Answer:
        """The next answer."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = int(first.split()[1])
        if method == "HEAD" or status in (100, 204):
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, self._chunks())
        if "content-length" in headers:
            return Answer(status, headers, self._exactly(int(headers["content-length"])))
        return Answer(status, headers, self._rest())

    def is_closed(self) -> bool:
        """Wait until the server ends the connection; return whether it sends nothing before."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def await_bytes(self) -> None:
        """Wait until the server has sent something; leave it unread."""
        assert self.socket.recv(1, socket.MSG_PEEK)

    def is_waiting(self) -> bool:
        """Whether the connection is open, and the server has sent nothing that is unread."""
        return not select.select([self.socket], [], [], 0)[0]

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._received:
            self._receive()
        return self._exactly(self._received.index(mark) + len(mark))[: -len(mark)]

    def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._receive()
        found = bytes(self._received[:size])
        del self._received[:size]
        return found

    def _chunks(self) -> bytes:
        chunks = []
        while size := int(self._until(b"\r\n"), 16):
            chunks.append(self._exactly(size))
            self._exactly(2)
        self._exactly(2)
        return b"".join(chunks)

    def _rest(self) -> bytes:
        while part := self.socket.recv(1 << 20):
            self._received += part
        return self._exactly(len(self._received))

    def _receive(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server has closed the connection")
        self._received += data


def request(
    method: str, path: str, headers: Mapping[str, str] | None = None, *, version: str = "1.1"
) -> bytes:
    """Request line and headers, including the headers of an administrator."""
    sent = {
        "Host": "roost.example",
        "X-Auth-Token": "admin",
        "OpenStack-API-Version": "placement 1.39",
        **(headers or {}),
    }
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {sent[name]}" for name in sent)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


JSON = {"Content-Type": "application/json"}
