"""Serves the reference implementation; runs in its virtual environment: PORT as argument.

With the standard library's server, so that nothing has to be compiled.
"""

from __future__ import annotations

import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class ThreadingServer(ThreadingMixIn, WSGIServer):
    """Answers several requests at once."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    """Does not write a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    from placement.wsgi.api import application  # type: ignore[import-not-found]

    with make_server(
        "127.0.0.1", int(sys.argv[1]), application, ThreadingServer, QuietHandler
    ) as server:
        server.serve_forever()
