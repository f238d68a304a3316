"""The server that Roost runs under, sending the files of a directory: the least an answer costs.

Run by the interpreter of Roost's environment: static_server.py PORT WORKERS DIRECTORY
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.mp import MPServer

# As in roost/cli/serve.py: the comparison is with the same server.
THREADS = 64


def application(directory: Path) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """A WSGI application that keeps in memory what it has sent once."""
    bodies: dict[str, bytes] = {"/": b"{}"}

    def send(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        body = bodies.get(path)
        if body is None:
            body = bodies[path] = (directory / path.strip("/")).read_bytes()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start_response("200 OK", headers)
        return [body]

    return send


def main() -> None:
    """Serve until SIGTERM."""
    port, workers, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    server = MPServer(
        "static_server:application",
        address="127.0.0.1",
        port=port,
        interface=Interfaces.WSGI,
        workers=workers,
        blocking_threads=THREADS,
        log_level=LogLevels.error,
        websockets=False,
    )
    server.serve(target_loader=lambda _target: application(directory))


if __name__ == "__main__":
    main()
