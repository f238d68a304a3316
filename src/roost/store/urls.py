"""Database URLs: which driver an URL means, and what is said when none is installed."""

from __future__ import annotations

import importlib.util

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from roost.store.errors import DatabaseUnusable

# URL scheme -> (drivers in the order of preference with their modules, extra that brings one).
# The first driver named is kept if it is installed; the others stand in for it.
_DRIVERS: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "sqlite": ((("pysqlite", "sqlite3"),), ""),
    "postgresql": ((("psycopg", "psycopg"), ("psycopg2", "psycopg2")), "postgresql"),
    "mysql": ((("mysqldb", "MySQLdb"), ("pymysql", "pymysql")), "mysql"),
    "mariadb": ((("mysqldb", "MySQLdb"), ("pymysql", "pymysql")), "mysql"),
}


def parse_url(text: str, extra_parameters: str = "") -> URL:
    """The URL with the driver it is going to be used with, or `DatabaseUnusable` and the fix.

    >>> parse_url("sqlite:////var/lib/roost.db").drivername
    'sqlite+pysqlite'
    """
    if extra_parameters:
        text += ("&" if "?" in text else "?") + extra_parameters
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise DatabaseUnusable(
            "The database URL cannot be read. Write it like sqlite:////var/lib/roost/roost.db or "
            "postgresql://user:password@host/placement."
        ) from None
    backend, _, driver = url.drivername.partition("+")
    backend = {"postgres": "postgresql"}.get(backend, backend)
    if backend not in _DRIVERS:
        raise DatabaseUnusable(
            f"The database URL begins with {url.drivername!r}; sqlite, postgresql, mysql and "
            "mariadb are known."
        )
    if backend == "sqlite" and url.host:
        raise DatabaseUnusable(
            "An SQLite URL has three slashes before a relative path and four before an absolute "
            "one: sqlite:///roost.db, sqlite:////var/lib/roost/roost.db"
        )
    if backend == "sqlite" and (not url.database or url.database == ":memory:"):
        raise DatabaseUnusable(
            "An SQLite database in memory cannot be shared by workers; name a file: "
            "sqlite:////path/to/roost.db"
        )
    return url.set(drivername=f"{backend}+{_installed_driver(backend, driver)}")


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
