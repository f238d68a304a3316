"""Database servers for one test, which the test may kill."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pymysql
import pytest

from databases import MariaDB, PostgreSQL, postgresql_programs, private_postgresql
from ports import reserved_port
from support.short_paths import SHORT
from support.waiting import SECONDS_MAX, wait_until


@dataclass(frozen=True)
class PrivatePostgreSQL:
    """A PostgreSQL server on a spare port."""

    administration: str
    databases: PostgreSQL

    def kill_backend(self) -> None:
        """Kill one server process, as the kernel does when memory runs out.

        The server then ends all its processes and recovers, without a new start.
        """
        with suppress(psycopg.OperationalError), self._connect() as witness:
            with self._connect() as connection:
                os.kill(connection.info.backend_pid, signal.SIGKILL)
            # The server ends the witness before it begins to recover.
            while True:
                witness.execute("SELECT pg_sleep(0.01)")
        wait_until(self._answers, lambda: "the private PostgreSQL server")

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            self.administration, autocommit=True, connect_timeout=int(SECONDS_MAX)
        )

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), self._connect() as connection:
            connection.execute("SELECT 1")
            return True
        return False


@contextmanager
def own_postgresql() -> Iterator[PrivatePostgreSQL]:
    """Run a PostgreSQL server; the test is skipped where it is not installed."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("no initdb here")
    with private_postgresql(programs) as url:
        yield PrivatePostgreSQL(url, PostgreSQL(url, durable=True))


@dataclass
class PrivateMariaDB:
    """A MariaDB server on a spare port. When killed, the server loses its last commits."""

    home: Path
    port: int
    databases: MariaDB = field(init=False)
    _process: subprocess.Popen[bytes] | None = None
    _started_at: int = 0

    def __post_init__(self) -> None:
        self.databases = MariaDB(f"mysql://root@127.0.0.1:{self.port}")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        # Readers know a server by the second of its start. So two starts have different seconds.
        wait_until(lambda: int(time.time()) > self._started_at + 1)
        self._started_at = int(time.time())
        with (self.home / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(_program("mariadbd")),
                    "--no-defaults",
                    *_as_owner(),
                    f"--datadir={self.home / 'data'}",
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    f"--socket={self.home / 'socket'}",
                    f"--pid-file={self.home / 'pid'}",
                    "--skip-grant-tables",
                    "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-flush-log-at-timeout=2700",
                    "--innodb-buffer-pool-size=32M",
                ],
                stdout=output,
                stderr=output,
            )
        wait_until(self._answers, lambda: "the private MariaDB server")

    def flush(self) -> None:
        """Write all commits so far to disk."""
        # MariaDB flushes its log when it creates a table.
        self.databases.execute("CREATE DATABASE IF NOT EXISTS flushed")
        self.databases.execute("CREATE OR REPLACE TABLE flushed.flushed (id INTEGER) ENGINE=InnoDB")

    def kill(self) -> None:
        """Kill the server, which loses all commits that are not on disk."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.home / "output").read_text(errors="replace")
        with suppress(pymysql.err.OperationalError):
            self.databases.execute("SELECT 1")
            return True
        return False


@contextmanager
def own_mariadb() -> Iterator[PrivateMariaDB]:
    """Run a MariaDB server; the test is skipped where it is not installed."""
    if _program("mariadbd") is None or shutil.which("mariadb-install-db") is None:
        pytest.skip("no mariadbd here")
    with (
        tempfile.TemporaryDirectory(prefix="roost-mariadb-", dir=SHORT) as home,
        reserved_port() as port,
    ):
        directory = Path(home)
        if os.getuid() == 0:
            owner = pwd.getpwnam("mysql")
            os.chown(directory, owner.pw_uid, owner.pw_gid)
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                *_as_owner(),
                f"--datadir={directory / 'data'}",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ],
            check=True,
            capture_output=True,
        )
        server = PrivateMariaDB(directory, port)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _program(name: str) -> Path | None:
    # Debian has servers in directories that are not in the PATH of ordinary users.
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec")
    return Path(found) if found else None


def _as_owner() -> list[str]:
    # MariaDB refuses to run as root without a `--user`.
    return ["--user=mysql"] if os.getuid() == 0 else []
