"""The options of a database URL: an error names the option that its driver does not know."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from urllib.parse import parse_qsl

from sqlalchemy.dialects import plugins
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from roost.model.text import nearest
from roost.store.errors import DatabaseUnusable

# SQLAlchemy itself knows this option, for every database.
_PLUGIN = "plugin"
# PostgreSQL has one of these for each host.
_REPEATED = frozenset({"host", "port", _PLUGIN})
_SQLITE = frozenset(
    {"timeout", "isolation_level", "detect_types", "check_same_thread", "cached_statements"}
)
# SQLAlchemy joins these into one argument.
_MYSQL_TLS = frozenset(
    {"ssl_ca", "ssl_key", "ssl_cert", "ssl_capath", "ssl_cipher", "ssl_check_hostname"}
)


def read_options(text: str) -> dict[str, str]:
    """The options in a text like `a=b&c=d`.

    >>> read_options("charset=utf8mb4")
    {'charset': 'utf8mb4'}
    """
    try:
        return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)))
    except ValueError:
        raise DatabaseUnusable(
            "The options of the database URL cannot be read. Write them as name=value, with `&` "
            "between them."
        ) from None


def check_options(url: URL) -> None:
    """Refuse an option that the driver does not know, or that has an invalid value."""
    known = driver_options(url.get_driver_name())
    for name, value in url.query.items():
        if known is not None and name not in known and name != _PLUGIN:
            raise DatabaseUnusable(
                f"The database URL has the option {name!r}, which the driver "
                f"{url.get_driver_name()} does not know. {_advice(name, known)}"
            )
        if isinstance(value, tuple) and name not in _REPEATED:
            raise DatabaseUnusable(
                f"The database URL has the option {name!r} more than once. Remove all but one."
            )
        if not _is_taken(url, name):
            # The value may be a secret.
            raise DatabaseUnusable(
                f"The option {name!r} of the database URL has an invalid value. Give it another "
                "value, or remove the option."
            )


def driver_options(driver: str) -> frozenset[str] | None:
    """The options that a driver knows; `None` if they are not known."""
    return _KNOWN.get(driver, lambda: None)()


def _of_psycopg() -> frozenset[str]:
    # An installation has only the drivers of its databases.
    from psycopg import pq  # noqa: PLC0415

    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())


def _of_pymysql() -> frozenset[str]:
    # An installation has only the drivers of its databases.
    from pymysql.connections import Connection  # noqa: PLC0415

    return frozenset(inspect.signature(Connection).parameters) | _MYSQL_TLS


_KNOWN: dict[str, Callable[[], frozenset[str] | None]] = {
    "pysqlite": lambda: _SQLITE,
    "psycopg": _of_psycopg,
    "pymysql": _of_pymysql,
}


def _advice(name: str, known: frozenset[str]) -> str:
    meant = nearest(name, known)
    return f"Did you mean {meant!r}?" if meant else "Remove it."


def _is_taken(url: URL, name: str) -> bool:
    """Whether SQLAlchemy can turn the option into an argument of the driver."""
    try:
        if name == _PLUGIN:
            plugins.load(str(url.query[name]))
            return True
        # Hosts and ports belong together.
        together = _REPEATED if name in _REPEATED else {name}
        alone = {key: value for key, value in url.query.items() if key in together}
        url.get_dialect()().create_connect_args(url.set(query=alone))
    except (ValueError, TypeError, ArgumentError):
        return False
    return True
