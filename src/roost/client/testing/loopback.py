"""A fake server on a loopback port, for programs that need an address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from roost.client.errors import TransportFailed
from roost.client.testing.fake_placement import FakePlacement
from roost.client.transport import PlacementRequest, PlacementResponse

_BODILESS = (204, 304)


@contextmanager
def on_loopback(server: FakePlacement) -> Iterator[str]:
    """Serve a fake server until the block ends; gives its URL, with any token."""

    class Handler(_FakeHandler):
        fake = server

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


class _FakeHandler(BaseHTTPRequestHandler):
    fake: FakePlacement
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Tests look at `FakePlacement.requests` instead."""

    def handle_any(self) -> None:
        """Answer a request, or end the connection if the answer is to be lost."""
        length = int(self.headers.get("Content-Length", "0"))
        content = self.rfile.read(length)
        version = self.headers.get("OpenStack-API-Version", "").removeprefix("placement ")
        request = PlacementRequest(
            self.command, self.path, json.loads(content) if content else None, version or None
        )
        try:
            answer = self.fake.attempt(request)
        except TransportFailed:
            self.close_connection = True
            return
        self._send(answer)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815  # the names of the base class

    def _send(self, answer: PlacementResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status not in _BODILESS:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)
