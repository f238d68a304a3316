"""A live placement server on a loopback port, with configuration files of its own."""

from __future__ import annotations

import configparser
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import httpx
import yaml

from databases import Database
from ports import reserved_port

READY_SECONDS = 60.0
STOP_SECONDS = 10.0

Options = Mapping[str, Mapping[str, str]]
"""Configuration: section -> option -> value."""


class ServerError(Exception):
    """A server could not be started."""


@dataclass(frozen=True)
class Program:
    """A program that can be started as the server."""

    name: str
    command: Callable[[Path, int], list[str]]
    """The command line for a configuration file and a port."""
    options: Options = field(default_factory=dict)
    """The options of its placement.conf beyond those of every server."""


def roost(executable: Path) -> Program:
    """Return the program that an executable of Roost is."""

    def command(config_file: Path, port: int) -> list[str]:
        return [
            *(str(executable), "serve", "--config-file", str(config_file)),
            *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        ]

    return Program("roost", command)


def reference() -> Program:
    """Return openstack-placement itself, under the uwsgi of this virtual environment."""
    uwsgi = Path(sys.executable).with_name("uwsgi")
    if not uwsgi.exists():
        raise ServerError(
            f"--server reference needs uwsgi: {uwsgi} does not exist; install uwsgi there with pip"
        )

    def command(_config_file: Path, port: int) -> list[str]:
        # --http11-socket keeps connections alive. With one process, every idle connection would
        # block the server for seconds.
        return [
            *(str(uwsgi), "--http-socket", f"127.0.0.1:{port}", "--virtualenv", sys.prefix),
            *("--module", "placement.wsgi.api:application", "--need-app", "--die-on-term"),
            *("--processes", "1", "--enable-threads", "--buffer-size", "65535"),
            *("--disable-logging", "--wsgi-disable-file-wrapper"),
        ]

    # The databases are thrown away, so writes need not wait for the disk.
    return Program("reference", command, {"placement_database": {"sqlite_synchronous": "false"}})


class Server:
    """One server on one database; runs while its context is open."""

    def __init__(
        self,
        program: Program,
        database: Database,
        directory: Path,
        options: Options,
        policy: Mapping[str, str],
    ) -> None:
        self.stopped_late = False
        self.port = 0
        self._program = program
        self._directory = directory
        self._log = directory / "server.log"
        self._config_file = directory / "placement.conf"
        self._policy_file = directory / "policy.yaml"
        self._process: subprocess.Popen[bytes] | None = None
        self._port_loan = ExitStack()
        directory.mkdir(parents=True, exist_ok=True)
        self._write_files(database, options, policy)

    @property
    def process_id(self) -> int | None:
        """The id of the server's first process, while it runs."""
        return self._process.pid if self._process else None

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        try:
            self._start()
        except BaseException:
            # A starting server may ignore SIGTERM, and has no request to finish.
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._terminate()
        self._kill()

    def _write_files(self, database: Database, options: Options, policy: Mapping[str, str]) -> None:
        """Write placement.conf and policy.yaml."""
        self._policy_file.write_text(yaml.safe_dump(dict(policy)), encoding="utf-8")
        configuration = configparser.ConfigParser(interpolation=None)
        needed = {
            "api": {"auth_strategy": "noauth2"},
            "oslo_policy": {
                "enforce_new_defaults": "false",
                "policy_file": str(self._policy_file),
            },
            "placement_database": {
                "connection": database.url,
                "sync_on_startup": "true" if database.empty else "false",
            },
        }
        for part in (needed, self._program.options, options):
            configuration.read_dict(part)
        with self._config_file.open("w", encoding="utf-8") as config_file:
            configuration.write(config_file)

    def _start(self) -> None:
        """Start the process and wait until it answers."""
        self.port = self._port_loan.enter_context(reserved_port())
        # oslo.config also takes options from OS_<GROUP>__<OPTION>, and the shell of an operator of
        # OpenStack has many OS_ variables.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("OS_")
        }
        environment["OS_PLACEMENT_CONFIG_DIR"] = str(self._directory)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._program.command(self._config_file, self.port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_SECONDS
        with httpx.Client(base_url=self.url, timeout=5, trust_env=False, verify=False) as client:
            while time.monotonic() < deadline:
                if self._process.poll() is not None:
                    code = self._process.returncode
                    raise ServerError(f"the server ended with exit code {code}: {self._tail()}")
                with suppress(httpx.TransportError):
                    if client.get("/").status_code < 500:
                        return
                time.sleep(0.05)
        raise ServerError(f"the server did not answer in {READY_SECONDS:.0f} s: {self._tail()}")

    def _terminate(self) -> None:
        """Ask the process to end, and wait for its end."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.stopped_late = True

    def _kill(self) -> None:
        """Kill what is left of the process and of its process group."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        self._port_loan.close()

    def _tail(self) -> str:
        """Return the end of the server's log."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
