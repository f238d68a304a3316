"""The options of a database URL: the driver knows them all, or the unknown one is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from urllib.parse import parse_qsl

from sqlalchemy.dialects import plugins
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from roost.model.spelling import nearest
from roost.store.errors import DatabaseUnusable

# SQLAlchemy itself takes this one, on every kind of database.
_ANYWHERE = "plugin"
# PostgreSQL has these once for each host.
_REPEATED = frozenset({"host", "port", _ANYWHERE})
_SQLITE = frozenset(
    {"timeout", "isolation_level", "detect_types", "check_same_thread", "cached_statements"}
)
# SQLAlchemy makes one argument of these.
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
    """Refuse an option that the URL's driver does not know, or with a value it cannot have."""
    known = known_options(url.get_driver_name())
    for name, value in url.query.items():
        if known is not None and name not in known and name != _ANYWHERE:
            raise DatabaseUnusable(
                f"The database URL has the option {name!r}, which the driver "
                f"{url.get_driver_name()} does not know. {_advice(name, known)}"
            )
        if isinstance(value, tuple) and name not in _REPEATED:
            raise DatabaseUnusable(
                f"The database URL has the option {name!r} more than once. Leave one of them."
            )
        if not _is_taken(url, name):
            # The value may be a secret.
            raise DatabaseUnusable(
                f"The option {name!r} of the database URL has a value that it cannot have. Give it "
                "another one, or remove it."
            )


def known_options(driver: str) -> frozenset[str] | None:
    """The options that a driver knows; `None` where the driver has no list of them."""
    return _KNOWN.get(driver, lambda: None)()


def _of_psycopg() -> frozenset[str]:
    # An installation has the drivers of its own databases only.
    from psycopg import pq  # noqa: PLC0415

    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())


def _of_pymysql() -> frozenset[str]:
    # An installation has the drivers of its own databases only.
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
    """Whether the option can be turned into what the driver is called with."""
    try:
        if name == _ANYWHERE:
            plugins.load(str(url.query[name]))
            return True
        # Hosts and ports go together.
        together = _REPEATED if name in _REPEATED else {name}
        alone = {other: value for other, value in url.query.items() if other in together}
        url.get_dialect()().create_connect_args(url.set(query=alone))
    except (ValueError, TypeError, ArgumentError):
        return False
    return True
