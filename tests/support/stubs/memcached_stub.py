"""A memcached that knows `get` and `set`."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType


class MemcachedStub:
    """Keeps values by key, while its context is open."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[str, bytes]] = {}
        # The lifetimes that clients asked for, in order.
        self.seconds: list[int] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self

    def __enter__(self) -> MemcachedStub:
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    stub: MemcachedStub


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        stub = self.server.stub
        while line := self.rfile.readline().decode().split():
            command, key, *rest = line
            if command == "set":
                flags, seconds, length = rest[:3]
                stub.kept[key] = flags, self.rfile.read(int(length) + 2)[:-2]
                stub.seconds.append(int(seconds))
                self.wfile.write(b"STORED\r\n")
                continue
            if key in stub.kept:
                flags, value = stub.kept[key]
                self.wfile.write(f"VALUE {key} {flags} {len(value)}\r\n".encode())
                self.wfile.write(value + b"\r\n")
            self.wfile.write(b"END\r\n")
