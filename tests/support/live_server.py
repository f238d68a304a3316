"""Live servers in processes of their own, on spare loopback ports."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from ports import reserved_port
from support.client import ApiClient, http_client

READY_SECONDS = 60


# Starts a server with these options of `[roost]`; `--demo` and the like may follow.
Serve = Callable[..., "LiveServer"]


class LiveServer:
    """`roost serve`, while its context is open; `start` and `kill` as often as a test likes."""

    def __init__(
        self,
        database_url: str,
        directory: Path,
        workers: int = 2,
        configuration: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        self._database_url = database_url
        self._workers = workers
        self._directory = directory
        # A part of placement.conf; without it there is no such file.
        self._configuration = configuration
        self._options = options
        self._loan = ExitStack()
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LiveServer:
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
        """What the server has said so far."""
        return (self._directory / "server.log").read_text(errors="replace")

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> ApiClient:
        """A client with a connection of its own, closed with the server."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._loan.callback(connection.close)
        return http_client(connection)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with (self._directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=clean_environment(self._environment()),
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended: {self.log[-2000:]}"
            with suppress(OSError, http.client.HTTPException):
                self.client().get("/")
                return
            time.sleep(0.05)
        raise AssertionError(f"the server did not answer: {self.log[-2000:]}")

    def _command(self) -> list[str]:
        return [
            *(str(Path(sys.executable).with_name("roost")), "serve", "--db", self._database_url),
            *("--workers", str(self._workers), "--port", str(self.port)),
            *self._config_file(),
            *self._options,
        ]

    def _config_file(self) -> list[str]:
        if not self._configuration:
            return []
        path = self._directory / "placement.conf"
        path.write_text(
            "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
            + self._configuration
        )
        return ["--config-file", str(path)]

    def _environment(self) -> dict[str, str]:
        return {}

    def kill(self) -> None:
        """End all its processes at once, as a loss of power would."""
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


class ReferenceServer(LiveServer):
    """The reference implementation, from its own virtual environment, on a database of its own."""

    def __init__(self, prefix: Path, directory: Path) -> None:
        super().__init__(f"sqlite:///{directory}/placement.sqlite", directory)
        self._prefix = prefix
        (directory / "policy.yaml").write_text("{}")
        (directory / "placement.conf").write_text(
            "[api]\nauth_strategy = noauth2\n"
            "[oslo_policy]\nenforce_new_defaults = false\n"
            f"policy_file = {directory}/policy.yaml\n"
            "[placement_database]\nsync_on_startup = true\nsqlite_synchronous = false\n"
            f"connection = {self._database_url}\n"
        )

    def _command(self) -> list[str]:
        script = Path(__file__).with_name("serve_reference.py")
        return [str(self._prefix / "bin" / "python"), str(script), str(self.port)]

    def _environment(self) -> dict[str, str]:
        return {"OS_PLACEMENT_CONFIG_DIR": str(self._directory)}


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without what would configure a service."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OS_", "ROOST_CONFIG"))
    }
    return kept | dict(extra or {})
