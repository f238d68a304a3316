"""The command `roost ui`."""

from __future__ import annotations

import secrets
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click

from roost.cli.shared.command import command
from roost.cli.shared.connection import ConnectionSettings, page_options
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.terminal import echo_line
from roost.cli.ui.gateway import Gateway, GatewayAnswer, refusal

_HOST = "127.0.0.1"
_PORT = 8780
_BODY_BYTES_MAX = 16 * 2**20


class PageServer(ThreadingHTTPServer):
    """Serves a gateway to browsers of this machine."""

    daemon_threads = True

    def __init__(self, host: str, port: int, gateway: Gateway) -> None:
        super().__init__((host, port), _Handler)
        self.gateway = gateway


class _Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "roost"
    sys_version = ""
    timeout = 60

    def _do(self) -> None:
        try:
            length = int(self.headers.get("content-length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= _BODY_BYTES_MAX or "transfer-encoding" in self.headers:
            self.close_connection = True
            self._send(refusal(413, "The body is too large, or its length is unknown."))
            return
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        # A browser that leaves before its answer is no failure.
        with suppress(ConnectionError, TimeoutError):
            self._send(self.server.gateway.answer(self.command, self.path, headers, body))

    # The standard library calls methods with these names.
    do_GET = do_PUT = do_POST = do_DELETE = _do  # noqa: N815  # names of the standard library

    def _send(self, answer: GatewayAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.stream is None:
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        # The end of the connection is the end of the stream.
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for piece in answer.stream:
                self.wfile.write(piece)
        finally:
            answer.stream.close()  # type: ignore[attr-defined]  # the gateway makes a generator

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
