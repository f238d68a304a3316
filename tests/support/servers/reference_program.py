"""A program that serves the reference implementation. Its argument is the port.

The program runs in the virtual environment of the reference. The server is that of the standard
library, so that the installation compiles no code.
"""

from __future__ import annotations

import sys
from socketserver import ThreadingMixIn
from unittest.mock import patch
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class ThreadingServer(ThreadingMixIn, WSGIServer):
    """Answers several requests at once."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    """A handler that logs no requests."""

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    # Only the environment of the reference, which runs this program, has the package.
    from jsonschema.validators import validator_for
    from placement.wsgi.api import application  # type: ignore[import-not-found]

    with (
        # The library checks the schema itself at each validation of a body or a query. That takes
        # a third of the time of a request, and the schemas of the reference are always the same.
        patch.object(validator_for({}), "check_schema", new=lambda *_, **__: None),
        make_server(
            "127.0.0.1", int(sys.argv[1]), application, ThreadingServer, QuietHandler
        ) as server,
    ):
        server.serve_forever()
