"""Live servers in their own processes, on spare loopback ports."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeAlias

from ports import reserved_port
from support.api_client import ApiClient, http_client
from support.servers.preloaded_roost import RoostProcess, start_roost

READY_SECONDS = 60


Process: TypeAlias = RoostProcess | subprocess.Popen[bytes]

# Starts a server with these options of `[roost]`.
Serve = Callable[..., "LiveServer"]


class LiveServer:
    """`roost serve`, while its context is open. A test may `kill` and `start` it many times."""

    def __init__(
        self,
        database_url: str,
        directory: Path,
        workers: int = 2,
        configuration: str = "",
        options: tuple[str, ...] = (),
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # The context of clients, if the options make the server speak TLS.
        self.tls = tls
        self._database_url = database_url
        self._workers = workers
        self._directory = directory
        # Lines of placement.conf. If empty, there is no such file.
        self._configuration = configuration
        self._options = options
        self._loan = ExitStack()
        self.port = 0
        self.process: Process | None = None

    def __enter__(self) -> Self:
        self.port = self._loan.enter_context(reserved_port())
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._loan.close()

    @property
    def log(self) -> str:
        """The log of the server so far."""
        return (self._directory / "server.log").read_text(errors="replace")

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def client(self) -> ApiClient:
        """A client with its own connection, which ends with the server."""
        connection = self._connection()
        self._loan.callback(connection.close)
        return http_client(connection)

    def _connection(self) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.tls)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with (self._directory / "server.log").open("ab") as log:
            self.process = self._start_process(log, clean_environment(self._environment()))
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended: {self.log[-2000:]}"
            with suppress(OSError, http.client.HTTPException):
                self.client().get("/")
                return
            time.sleep(0.05)
        raise AssertionError(f"the server did not answer: {self.log[-2000:]}")

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        return start_roost(self._arguments(), environment, log.fileno())

    def _arguments(self) -> list[str]:
        return [
            *("serve", "--db", self._database_url),
            *("--workers", str(self._workers), "--port", str(self.port)),
            *self._config_file(),
            *self._options,
        ]

    def _config_file(self) -> list[str]:
        if not self._configuration:
            return []
        path = self._directory / "placement.conf"
        # Lines of the test come last, so they count.
        path.write_text(
            "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
            + self._configuration
        )
        return ["--config-file", str(path)]

    def _environment(self) -> dict[str, str]:
        return {}

    def kill(self) -> None:
        """Kill all processes of the server at once, like a loss of power."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def worker_ids(self) -> list[int]:
        """The ids of the processes that answer requests."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(id_) for id_ in children.read_text().split()]


class InstalledServer(LiveServer):
    """`roost serve` as an operator starts it: the installed script, with all its imports."""

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        script = Path(sys.executable).with_name("roost")
        return start_program([str(script), *self._arguments()], log, environment)


class ReferenceServer(LiveServer):
    """The reference implementation, in its own virtual environment.

    Without a URL, it has a database of its own.
    """

    def __init__(
        self,
        prefix: Path,
        directory: Path,
        database_url: str = "",
        *,
        strategy: str = "noauth2",
        new_defaults: bool = False,
        configuration: str = "",
    ) -> None:
        # Claims of the reference fail with psycopg 3.
        database_url = database_url.replace("postgresql+psycopg:", "postgresql+psycopg2:")
        super().__init__(database_url or f"sqlite:///{directory}/placement.sqlite", directory)
        self._prefix = prefix
        (directory / "policy.yaml").write_text("{}")
        (directory / "placement.conf").write_text(
            f"[api]\nauth_strategy = {strategy}\n{configuration}"
            f"[oslo_policy]\nenforce_new_defaults = {new_defaults}\n"
            f"policy_file = {directory}/policy.yaml\n"
            "[placement_database]\nsync_on_startup = true\nsqlite_synchronous = false\n"
            f"connection = {self._database_url}\n"
        )

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        script = Path(__file__).with_name("reference_program.py")
        command = [str(self._prefix / "bin" / "python"), str(script), str(self.port)]
        return start_program(command, log, environment)

    def _environment(self) -> dict[str, str]:
        return {"OS_PLACEMENT_CONFIG_DIR": str(self._directory)}


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without variables that configure a service."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OS_", "ROOST_CONFIG"))
    }
    return kept | dict(extra or {})


def resident_megabytes(server: LiveServer) -> float:
    """The resident memory of the only worker."""
    (worker,) = server.worker_ids()
    status = Path(f"/proc/{worker}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def socket_count(server: LiveServer) -> int:
    """The number of sockets that the only worker has open."""
    (worker,) = server.worker_ids()
    found = 0
    for entry in Path(f"/proc/{worker}/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


def start_program(
    command: list[str], log: IO[bytes], environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a program in a new session."""
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
