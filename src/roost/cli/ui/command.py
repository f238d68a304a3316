"""The command `roost ui`."""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click

from roost.cli.shared.command import command
from roost.cli.shared.connection import ConnectionSettings, page_options
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.terminal import echo_line
from roost.cli.ui.gateway import Gateway, GatewayAnswer, refusal, without_key

_HOST = "127.0.0.1"
_PORT = 8780
_BODY_BYTES_MAX = 16 * 2**20
_LENGTH_DIGITS_MAX = 20
# A browser opens six, and each holds a thread.
CONNECTIONS_MAX = 128


class PageServer(ThreadingHTTPServer):
    """Serves a gateway to browsers of this machine."""

    daemon_threads = True

    def __init__(self, host: str, port: int, gateway: Gateway) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__((host, port), _Handler)
        self.gateway = gateway

    def process_request(self, request: Any, client_address: Any) -> None:
        """Let a thread serve a connection, or close the connection if too many are open."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "roost"
    sys_version = ""
    timeout = 60

    def handle(self) -> None:
        """Serve requests. A browser that leaves before its answer is no failure."""
        with suppress(ConnectionError):
            super().handle()

    def _do(self) -> None:
        gateway = self.server.gateway
        headers = {name.lower(): value for name, value in self.headers.items()}
        length = self._length()
        if length is None:
            self._refuse(refusal(413, "The body is too large, or its length is unknown."))
        elif length and not gateway.knows(headers):
            self._refuse(without_key())
        else:
            body = self.rfile.read(length)
            if len(body) < length:
                raise ConnectionError("the browser left within its request")
            self._send(gateway.answer(self.command, self.path, headers, body))

    def _length(self) -> int | None:
        """How many bytes the body has; `None` if the gateway does not take it."""
        text = self.headers.get("content-length", "0")
        if "transfer-encoding" in self.headers or not (text.isascii() and text.isdigit()):
            return None
        if len(text) > _LENGTH_DIGITS_MAX or int(text) > _BODY_BYTES_MAX:
            return None
        return int(text)

    def _refuse(self, answer: GatewayAnswer) -> None:
        """Answer without reading the body, so nothing else can use the connection."""
        answer.headers.append(("connection", "close"))
        self._send(answer)

    # The standard library calls methods with these names.
    do_GET = do_PUT = do_POST = do_DELETE = _do  # noqa: N815  # names of the standard library

    def _send(self, answer: GatewayAnswer) -> None:
        stream = answer.stream
        if stream is None:
            self._send_head(answer, ("content-length", str(len(answer.body))))
            self.wfile.write(answer.body)
            return
        with closing(stream):
            # The end of the connection is the end of the stream.
            self._send_head(answer, ("connection", "close"))
            for piece in stream:
                self.wfile.write(piece)

    def _send_head(self, answer: GatewayAnswer, framing: tuple[str, str]) -> None:
        self.send_response(answer.status)
        for name, value in (*answer.headers, framing):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Write nothing: the placement server has the log."""


@command()
@page_options
@click.option("--host", default=_HOST, show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="Port to listen at; 0 for any.",
)
def ui(*, connection: ConnectionSettings, host: str, port: int) -> None:
    """Serve the pages on this machine, in front of any placement server.

    The pages have what that server offers. A server other than Roost has no overview, no
    explanations and no changes, and the pages say so. The browser gets a key and no token: this
    command sends requests on with your credentials, to that server only, until Ctrl-C.

    \b
    Examples:
      roost ui --server http://controller:8778 --token-file token
      roost ui --os-cloud production
    """
    key = secrets.token_urlsafe(24)
    with connection.open() as transport:
        gateway = Gateway(transport, key)
        try:
            server = PageServer(host, port, gateway)
        except OSError as error:
            raise WrongUsage(
                f"Nothing can listen at {host}, port {port}: {error.strerror}. Give another --port."
            ) from None
        with server:
            shown = f"[{host}]" if ":" in host else host
            echo_line(f"The pages: http://{shown}:{server.server_port}/ui/#key={key}")
            echo_line(f"Requests go to {transport}. The link has the key: keep it to yourself.")
            server.serve_forever()
