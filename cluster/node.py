"""One server of the cluster: `roost serve` on a loopback port, which a run may kill and start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.servers.process_ends import wait_until_gone

READY_SECONDS = 60.0
# Longer than haproxy needs to notice: two checks, a second apart.
DRAIN_SECONDS = 4
_END_SECONDS = 60.0


class ClusterError(Exception):
    """A part of the cluster could not be started, or did not do what the run needs."""


@dataclass
class Node:
    """A server of one version on a database."""

    name: str
    command: list[str]
    """The `roost` command of the version."""
    port: int
    database_url: str
    directory: Path
    workers: int = 2
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._launch()
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                raise ClusterError(f"server {self.name} ended at its start: {self.log_end()}")
            with suppress(OSError):
                if self.status_of("/") < 500:
                    return
            time.sleep(0.05)
        raise ClusterError(f"server {self.name} did not answer: {self.log_end()}")

    def status_of(self, path: str) -> int:
        """The status of a request that goes to this server and not to the proxy."""
        request = (
            f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\nConnection: close\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(request.encode())
            head = connection.recv(65536)
        if len(head) < 12:
            raise ConnectionError("no answer")
        return int(head[9:12])

    def kill(self) -> float:
        """Kill all processes of the server, as a loss of power; return when all were gone."""
        return self._end(signal.SIGKILL)

    def terminate(self) -> float:
        """Stop the server as a service manager does; return when all processes were gone."""
        return self._end(signal.SIGTERM)

    def kill_worker(self) -> float:
        """Kill one worker process; return when it was gone."""
        worker = self.process_ids()[1]
        os.kill(worker, signal.SIGKILL)
        return wait_until_gone([worker])

    def process_ids(self) -> list[int]:
        """The supervisor and its workers."""
        assert self.process is not None
        first = self.process.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text()
        return [first, *map(int, children.split())]

    def log_end(self) -> str:
        """The last lines of the log."""
        return self._log.read_text(errors="replace")[-1500:].strip()

    @property
    def _log(self) -> Path:
        return self.directory / f"{self.name}.log"

    def _launch(self) -> None:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("OS_")}
        options = {
            "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "false",
            "OS_ROOST__DRAIN_SECONDS": str(DRAIN_SECONDS),
            # A line for each request would cost more than some of the requests.
            "OS_DEFAULT__DEFAULT_LOG_LEVELS": "placement.requestlog=WARNING",
        }
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(*self.command, "serve", "--db", self.database_url),
                    *("--port", str(self.port), "--workers", str(self.workers)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=inherited | options | self.environment,
                start_new_session=True,
            )

    def _end(self, number: signal.Signals) -> float:
        if self.process is None:
            return time.monotonic()
        members = self.process_ids() if self.process.poll() is None else []
        with suppress(ProcessLookupError):
            if number is signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        self.process.wait(_END_SECONDS)
        self.process = None
        return wait_until_gone(members)
