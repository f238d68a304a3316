"""Throw-away databases: SQLite files, and databases of a PostgreSQL or MariaDB server."""

from __future__ import annotations

import itertools
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import SplitResult, unquote, urlsplit

import psycopg
import pymysql

from ports import reserved_port

KINDS = ("sqlite", "postgresql", "mariadb")
POSTGRESQL_URL = "postgresql://postgres@127.0.0.1:5432/postgres"
MARIADB_URL = "mysql://root@127.0.0.1:3306"


class DatabaseError(Exception):
    """No database can be made."""


@dataclass(frozen=True)
class Database:
    """One database for one server."""

    name: str
    url: str
    empty: bool
    """Whether the server still has to create the tables."""


class Databases(ABC):
    """Makes databases of one kind and drops them again."""

    can_copy: ClassVar[bool] = True

    def __init__(self) -> None:
        self._names = (f"{self._prefix()}_{number}" for number in itertools.count())
        self._made: dict[str, Database] = {}

    def create(self) -> Database:
        """Make an empty database."""
        return self._make(None)

    def copy(self, template: Database) -> Database:
        """Make a database with the contents of a template, which must have no connections."""
        return self._make(template)

    def drop(self, database: Database) -> None:
        """Drop a database that this object made."""
        self._drop(database.name)
        del self._made[database.name]

    def drop_all(self) -> None:
        """Drop all databases of this object that were not dropped yet."""
        for database in list(self._made.values()):
            self.drop(database)

    def _make(self, template: Database | None) -> Database:
        name = next(self._names)
        database = Database(name, self._url(name), empty=template is None)
        # Noted first: `drop_all` also drops a database that an interrupt left half made.
        self._made[name] = database
        self._create(name, template.name if template else None)
        return database

    def _prefix(self) -> str:
        return f"roost_conformance_{secrets.token_hex(4)}"

    @abstractmethod
    def _url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a database."""

    @abstractmethod
    def _create(self, name: str, template: str | None) -> None: ...

    @abstractmethod
    def _drop(self, name: str) -> None: ...


class SQLite(Databases):
    """SQLite files in one directory."""

    SUFFIXES = ("", "-wal", "-shm")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        super().__init__()
        directory.mkdir(parents=True, exist_ok=True)

    def _prefix(self) -> str:
        return "placement"

    def _file(self, name: str, suffix: str = "") -> Path:
        return self._directory / f"{name}.sqlite{suffix}"

    def _url(self, name: str) -> str:
        return f"sqlite:///{self._file(name)}"

    def _create(self, name: str, template: str | None) -> None:
        # Without a template, the server creates the file.
        if template is not None:
            for suffix in self.SUFFIXES:
                source = self._file(template, suffix)
                if source.exists():
                    shutil.copy(source, self._file(name, suffix))

    def _drop(self, name: str) -> None:
        for suffix in self.SUFFIXES:
            self._file(name, suffix).unlink(missing_ok=True)


class PostgreSQL(Databases):
    """Databases of the PostgreSQL server behind a superuser's URL."""

    def __init__(self, url: str, *, durable: bool) -> None:
        super().__init__()
        self._administration = urlsplit(url)._replace(scheme="postgresql")
        self._durable = durable

    def execute(self, *statements: str) -> None:
        """Execute statements outside a transaction."""
        url = self._administration.geturl()
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _url(self, name: str) -> str:
        parts = self._administration._replace(scheme="postgresql+psycopg", path=f"/{name}")
        return parts.geturl()

    def _create(self, name: str, template: str | None) -> None:
        create = f'CREATE DATABASE "{name}" TEMPLATE "{template or "template1"}"'
        hurry = f'ALTER DATABASE "{name}" SET synchronous_commit = off'
        self.execute(create, *([] if self._durable else [hurry]))

    def _drop(self, name: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


class MariaDB(Databases):
    """Databases of the MariaDB or MySQL server behind an administrator's URL."""

    can_copy = False

    def __init__(self, url: str) -> None:
        super().__init__()
        self._administration: SplitResult = urlsplit(url)

    def execute(self, statement: str) -> None:
        """Execute one statement."""
        parts = self._administration
        connection = pymysql.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            connect_timeout=5,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def _url(self, name: str) -> str:
        parts = self._administration._replace(scheme="mysql+pymysql", path=f"/{name}")
        return parts.geturl()

    def _create(self, name: str, template: str | None) -> None:
        assert template is None, "MariaDB cannot copy a database"
        self.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")

    def _drop(self, name: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS `{name}`")


@contextmanager
def open_databases(
    kind: str, directory: Path, *, keep: bool, durable: bool = True
) -> Iterator[Databases]:
    """Open a maker of databases of one kind; drop them all at the end unless `keep` is set.

    Databases that are not durable may lose commits at a loss of power. Only PostgreSQL has such a
    setting for a single database.

    Raises DatabaseError where no database server answers.
    """
    with ExitStack() as stack:
        databases: Databases
        if kind == "sqlite":
            databases = SQLite(directory)
        elif kind == "postgresql":
            databases = _connect_postgresql(stack, durable=durable)
        else:
            databases = _connect_mariadb()
        try:
            yield databases
        finally:
            if not keep:
                databases.drop_all()


def _connect_postgresql(stack: ExitStack, *, durable: bool) -> PostgreSQL:
    """Use the server that the environment names, or a private one for the life of the stack."""
    url = os.environ.get("ROOST_TEST_POSTGRESQL", POSTGRESQL_URL)
    databases = PostgreSQL(url, durable=durable)
    try:
        databases.execute("SELECT 1")
    except psycopg.OperationalError as error:
        programs = postgresql_programs()
        if programs is None:
            raise DatabaseError(
                f"no PostgreSQL server answers at {url} ({str(error).strip()}), and no initdb was "
                "found to make one; ROOST_TEST_POSTGRESQL names another server"
            ) from error
        print(f"postgresql: no server answers at {url}; using a private server", flush=True)
        url = stack.enter_context(private_postgresql(programs))
        databases = PostgreSQL(url, durable=durable)
    return databases


def _connect_mariadb() -> MariaDB:
    """Use the server that the environment names."""
    url = os.environ.get("ROOST_TEST_MARIADB", MARIADB_URL)
    databases = MariaDB(url)
    try:
        databases.execute("SELECT 1")
    except pymysql.err.OperationalError as error:
        raise DatabaseError(
            f"no MariaDB server answers at {url} ({error}); ROOST_TEST_MARIADB names another one"
        ) from error
    return databases


def postgresql_programs() -> Path | None:
    """Return the directory of initdb and pg_ctl, of the newest version if there are several."""
    # Debian keeps these programs outside PATH, in a directory for each version.
    debian = list(Path("/usr/lib/postgresql").glob("[0-9]*/bin"))
    debian.sort(key=lambda directory: float(directory.parent.name), reverse=True)
    found = shutil.which("initdb")
    for directory in [Path(found).parent, *debian] if found else debian:
        if (directory / "initdb").exists() and (directory / "pg_ctl").exists():
            return directory
    return None


class _Cluster:
    """A private PostgreSQL server in a temporary directory."""

    def __init__(self, programs: Path, home: Path) -> None:
        self._programs = programs
        self._home = home
        self._owner: pwd.struct_passwd | None = None
        if os.getuid() == 0:
            # PostgreSQL refuses to run as root.
            try:
                self._owner = pwd.getpwnam("postgres")
            except KeyError:
                raise DatabaseError("a private PostgreSQL needs a user named postgres") from None
            os.chown(home, self._owner.pw_uid, self._owner.pw_gid)

    def execute(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs on the cluster, as a user that it accepts."""
        command = [str(self._programs / program), "-D", str(self._home / "data"), *arguments]
        # A pipe would not end with pg_ctl, because the server holds its output open.
        output_file = self._home / "output"
        with output_file.open("ab") as output:
            done = subprocess.run(
                command,
                stdout=output,
                stderr=output,
                cwd="/",
                user=self._owner.pw_uid if self._owner else None,
                group=self._owner.pw_gid if self._owner else None,
                extra_groups=[] if self._owner else None,
                check=False,
            )
        if done.returncode:
            reason = output_file.read_text(errors="replace")[-2000:].strip()
            raise DatabaseError(f"{program} failed: {reason}")


@contextmanager
def private_postgresql(programs: Path) -> Iterator[str]:
    """Run a PostgreSQL server on a spare port and lend its superuser's URL."""
    with (
        tempfile.TemporaryDirectory(prefix="roost-conformance-postgresql-") as home,
        reserved_port() as port,
    ):
        cluster = _Cluster(programs, Path(home))
        cluster.execute("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        # -F: the databases are thrown away, so they need not survive a crash.
        options = f"-F -p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        try:
            cluster.execute("pg_ctl", "-w", "-o", options, "start")
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            # pg_ctl fails if the server did not start.
            with suppress(DatabaseError):
                cluster.execute("pg_ctl", "-w", "-m", "immediate", "stop")
