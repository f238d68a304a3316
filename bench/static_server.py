"""Roost's server with an application that sends files: the lowest cost of an answer.

Run by the interpreter of Roost's environment: static_server.py PORT WORKERS DIRECTORY
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from roost.model.limits import Limits
from roost.server.listening import TcpPlace
from roost.server.supervisor import Supervisor, WorkerLink
from roost.server.worker import run_worker


def application(directory: Path) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """A WSGI application that sends files and keeps them in memory."""
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

    def work(link: WorkerLink) -> None:
        places = [TcpPlace("127.0.0.1", port)]
        run_worker(lambda: application(directory), Limits(), places, link.tell_ready)

    # No file is read again.
    sys.exit(Supervisor(workers, work, reload=lambda: False).run())


if __name__ == "__main__":
    main()
