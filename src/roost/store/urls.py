"""Database URLs: the driver of a URL, and errors for URLs that cannot be used."""

from __future__ import annotations

import importlib.util
import re

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from roost.store.errors import DatabaseUnusable
from roost.store.url_options import check_options, driver_options, read_options

# URL scheme -> (drivers with their modules in the order of preference, extra that installs one).
# The driver of the URL is used if it is installed, or else the first driver that is.
_DRIVERS: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "sqlite": ((("pysqlite", "sqlite3"),), ""),
    "postgresql": ((("psycopg", "psycopg"), ("psycopg2", "psycopg2")), "postgresql"),
    "mysql": ((("mysqldb", "MySQLdb"), ("pymysql", "pymysql")), "mysql"),
    "mariadb": ((("mysqldb", "MySQLdb"), ("pymysql", "pymysql")), "mysql"),
}

# The address comes after the password, or after the slashes if there is none.
_PARTS = re.compile(
    r"[^:/]*://(?P<login>[^:/?]*:[^@]*@)?(?P<address>[^?]*)\??(?P<options>.*)", re.DOTALL
)
# Options that name a database, or a file that names one.
_NAMING_OPTIONS = frozenset({"dbname", "database", "db", "service", "read_default_file"})
_ENCODE = (
    "In user and password, write @ as %40, / as %2F, : as %3A, ? as %3F, # as %23 and % as %25."
)


def parse_url(text: str, extra_parameters: str = "") -> URL:
    """The URL with its installed driver, or `DatabaseUnusable` with the fix.

    >>> parse_url("sqlite:////var/lib/roost.db").drivername
    'sqlite+pysqlite'
    """
    if any(not sign.isprintable() for sign in text):
        raise DatabaseUnusable(
            "The database URL continues in a second line. In a configuration file, a line that "
            "begins with a space continues the value before it: remove that space."
        )
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise DatabaseUnusable(
            "The database URL cannot be read. Write it like sqlite:////var/lib/roost/roost.db or "
            f"postgresql://user:password@host/placement. {_ENCODE}"
        ) from None
    backend, _, driver = url.drivername.partition("+")
    backend = {"postgres": "postgresql"}.get(backend, backend)
    if backend not in _DRIVERS:
        raise DatabaseUnusable(
            f"The database URL begins with {url.drivername!r}. Use sqlite, postgresql, mysql or "
            "mariadb."
        )
    if backend == "sqlite" and (url.host or url.username or url.port):
        raise DatabaseUnusable(
            "An SQLite URL has three slashes before a relative path and four before an absolute "
            "one: sqlite:///roost.db, sqlite:////var/lib/roost/roost.db"
        )
    if backend == "sqlite" and (not url.database or url.database == ":memory:"):
        raise DatabaseUnusable(
            "Workers cannot share an SQLite database in memory. Name a file: "
            "sqlite:////path/to/roost.db"
        )
    if backend == "sqlite" and ("uri" in url.query or str(url.database).startswith("file:")):
        raise DatabaseUnusable(
            "An SQLite URL names a path, not a `file:` URI: sqlite:////var/lib/roost/roost.db"
        )
    url = url.set(drivername=f"{backend}+{_installed_driver(backend, driver)}")
    _check_password(text, url.get_driver_name())
    url = url.update_query_dict(read_options(extra_parameters))
    check_options(url)
    if not url.database and _NAMING_OPTIONS.isdisjoint(url.query):
        raise DatabaseUnusable(
            f"The database URL names no database. Write it like {backend}://user:password@host/"
            "placement."
        )
    return url


def _check_password(text: str, driver: str) -> None:
    """Refuse a password with an unencoded `@`: its rest would count as a host, and be shown.

    Such a URL has a second `@`, which otherwise only values of known options have.
    """
    parts = _PARTS.match(text)
    if parts is None:
        return
    if parts["login"] and ("@" in parts["address"] or _hides_host(parts["options"], driver)):
        raise DatabaseUnusable(f"The password in the database URL contains an `@`. {_ENCODE}")
    read_options(parts["options"])


def _hides_host(options: str, driver: str) -> bool:
    known = driver_options(driver)
    names = {option.partition("=")[0] for option in options.split("&")}
    return "@" in options and known is not None and not names <= known


def _installed_driver(backend: str, wanted: str) -> str:
    drivers, extra = _DRIVERS[backend]
    ordered = sorted(drivers, key=lambda driver: driver[0] != wanted)
    for name, module in ordered:
        if importlib.util.find_spec(module) is not None:
            return name
    raise DatabaseUnusable(
        f"No driver for {backend} is installed ({', '.join(module for _, module in ordered)}). "
        f"Install one with: pip install 'roost[{extra}]'"
    )
