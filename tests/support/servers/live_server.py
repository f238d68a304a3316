"""Live servers in their own processes, on spare loopback ports."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeAlias

from ports import reserved_port
from support.api_client import ApiClient, http_client
from support.servers.preloaded_roost import RoostProcess, start_roost
from support.waiting import SECONDS_MAX, wait_until

Process: TypeAlias = RoostProcess | subprocess.Popen[bytes]

# The buffers of connections of a `NarrowServer`. The kernel takes twice as many.
NARROW_BYTES = 16 * 1024

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
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=SECONDS_MAX, context=self.tls
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with (self._directory / "server.log").open("ab") as log:
            self.process = self._start_process(log, clean_environment(self._environment()))
        wait_until(self._answers, lambda: self.log[-2000:])

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server ended: {self.log[-2000:]}"
        with (
            closing(self._connection()) as connection,
            suppress(OSError, http.client.HTTPException),
        ):
            return http_client(connection).get("/").status > 0
        return False

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        return start_roost(self._arguments(), environment, log.fileno())

    def _arguments(self) -> list[str]:
        return [
            *("serve", "--db", self._database_url),
            *("--workers", str(self._workers)),
            *self._place(),
            *self._config_file(),
            *self._options,
        ]

    def _place(self) -> list[str]:
        """The options that say where the server listens."""
        return ["--port", str(self.port)]

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
            workers: list[int] = []
            with suppress(OSError):
                workers = self.worker_ids()
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
            # A worker that is still dying listens on.
            wait_until(lambda: not any(map(_has_files, workers)))

    def worker_ids(self) -> list[int]:
        """The ids of the processes that answer requests."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(id_) for id_ in children.read_text().split()]

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Let the workers do nothing, while the kernel takes connections and bytes for them."""
        for worker in self.worker_ids():
            os.kill(worker, signal.SIGSTOP)
        try:
            yield
        finally:
            for worker in self.worker_ids():
                os.kill(worker, signal.SIGCONT)


def _has_files(process_id: int) -> bool:
    """Whether a process has its files and sockets still open: one of its threads lives."""
    return any(map(_is_alive, Path(f"/proc/{process_id}/task").glob("*/stat")))


def _is_alive(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class NarrowServer(LiveServer):
    """`roost serve`, for whose connections the kernel keeps few bytes, whatever its settings.

    A large answer fills them, and a client that has sent a large body knows that nearly all of it
    has come.
    """

    def __enter__(self) -> Self:
        # Accepted connections inherit the size of the buffers.
        self._listener = self._loan.enter_context(socket.socket())
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, NARROW_BYTES)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW_BYTES)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(4096)
        self.port = self._listener.getsockname()[1]
        self.start()
        return self

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        listener = self._listener.fileno()
        return start_roost(self._arguments(), environment, log.fileno(), listener=listener)

    def _place(self) -> list[str]:
        return []


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
