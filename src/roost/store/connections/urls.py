"""Database URLs: the driver of a URL, and errors for URLs and options that cannot be used."""

from __future__ import annotations

import importlib.util
import re
from urllib.parse import parse_qsl

from sqlalchemy.dialects import plugins
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from roost.model.text import nearest
from roost.store.connections.errors import DatabaseUnusable
from roost.store.dialect import ALIASES, SCHEMES, dialect_named

# The address comes after the password, or after the slashes if there is none.
_PARTS = re.compile(
    r"[^:/]*://(?P<login>[^:/?]*:[^@]*@)?(?P<address>[^?]*)\??(?P<options>.*)", re.DOTALL
)
# SQLAlchemy itself knows this option, for every database.
_PLUGIN = "plugin"
# A server may have one of these for each of its hosts.
_REPEATED = frozenset({"host", "port", _PLUGIN})
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
    backend = ALIASES.get(backend, backend)
    if backend not in SCHEMES:
        raise DatabaseUnusable(
            f"The database URL begins with {url.drivername!r}. Use {', '.join(SCHEMES[:-1])} or "
            f"{SCHEMES[-1]}."
        )
    dialect = dialect_named(backend)
    dialect.check_url(url)
    url = url.set(drivername=f"{backend}+{_installed_driver(backend, driver)}")
    known = dialect.driver_options(url.get_driver_name())
    _check_password(text, known)
    url = url.update_query_dict(_read_options(extra_parameters))
    _check_options(url, known)
    if not url.database and dialect.naming_options.isdisjoint(url.query):
        raise DatabaseUnusable(
            f"The database URL names no database. Write it like {backend}://user:password@host/"
            "placement."
        )
    return url


def _check_password(text: str, known: frozenset[str] | None) -> None:
    """Refuse a password with an unencoded `@`: its rest would count as a host, and be shown.

    Such a URL has a second `@`, which otherwise only values of known options have.
    """
    parts = _PARTS.match(text)
    if parts is None:
        return
    if parts["login"] and ("@" in parts["address"] or _hides_host(parts["options"], known)):
        raise DatabaseUnusable(f"The password in the database URL contains an `@`. {_ENCODE}")
    _read_options(parts["options"])


def _hides_host(options: str, known: frozenset[str] | None) -> bool:
    names = {option.partition("=")[0] for option in options.split("&")}
    return "@" in options and known is not None and not names <= known


def _installed_driver(backend: str, wanted: str) -> str:
    dialect = dialect_named(backend)
    ordered = sorted(dialect.drivers, key=lambda driver: driver[0] != wanted)
    for name, module in ordered:
        if importlib.util.find_spec(module) is not None:
            return name
    raise DatabaseUnusable(
        f"No driver for {backend} is installed ({', '.join(module for _, module in ordered)}). "
        f"Install one with: pip install 'roost[{dialect.extra}]'"
    )


def _read_options(text: str) -> dict[str, str]:
    """The options in a text like `a=b&c=d`.

    >>> _read_options("charset=utf8mb4")
    {'charset': 'utf8mb4'}
    """
    try:
        return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)))
    except ValueError:
        raise DatabaseUnusable(
            "The options of the database URL cannot be read. Write them as name=value, with `&` "
            "between them."
        ) from None


def _check_options(url: URL, known: frozenset[str] | None) -> None:
    """Refuse an option that the driver does not know, or that has an invalid value."""
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
