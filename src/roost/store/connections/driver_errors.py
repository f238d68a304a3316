"""A driver's error for the operator: the reason in one line, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from roost.store.connections.errors import Busy, DatabaseUnusable, WriteRefused, reason_of
from roost.store.dialect import dialect_named

# Parts of the messages of all databases, and the advice; the first match counts.
_ADVICE = (
    (("disk is full", "no space left", "disk full", "is full"), "Make room on that disk."),
    (("disk i/o error",), "Make room on that disk, or check whether it is broken."),
    (
        ("not a database", "malformed"),
        "Restore the file from a backup, or name another one.",
    ),
    (
        ("readonly", "read-only", "unable to open"),
        "Let this user write the file and its directory.",
    ),
    (
        ("permission denied for", "command denied", "to database", "must be owner"),
        "Grant this user all rights on the database; `roost db check` and `roost db export` need "
        "SELECT on all tables and sequences.",
    ),
    (
        ("authentication failed", "access denied", "no password supplied"),
        "Check user and password; in a URL, write @ / : ? # % in them percent-encoded.",
    ),
)


def shown_url(url: URL) -> str:
    """The URL for logs and errors: without password, and without options, which may contain one."""
    return url.set(query={}).render_as_string(hide_password=True)


def reason(error: BaseException, url: URL) -> str:
    """What the driver says, in one line and without passwords."""
    text = reason_of(error)
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    return text


def advice(text: str, url: URL) -> str:
    """What the operator can do about an error with this text."""
    return known_advice(text) or dialect_named(url.get_backend_name()).general_advice


def known_advice(text: str) -> str | None:
    """What the operator can do about an error with this text; `None` if that is not known.

    >>> known_advice("database or disk is full")
    'Make room on that disk.'
    """
    lower = text.lower()
    fitting = (sentence for words, sentence in _ADVICE if any(word in lower for word in words))
    return next(fitting, None)


@contextmanager
def explained(url: URL) -> Iterator[None]:
    """Turn an error of the database into `DatabaseUnusable`, for the operator of a command."""
    try:
        yield
    except (DBAPIError, PoolTimeout, WriteRefused) as error:
        said = reason(error, url)
        raise DatabaseUnusable(
            f"The database {shown_url(url)} cannot be used: {said}. {advice(said, url)}"
        ) from error
    except Busy as error:
        raise DatabaseUnusable(
            f"The database {shown_url(url)} cannot be written: {error}. End the process that "
            "writes, or try again."
        ) from error


def _secrets(url: URL) -> Iterator[str]:
    names = dialect_named(url.get_backend_name()).secret_options
    values: list[Any] = [url.password, *(url.query.get(name) for name in names)]
    return (str(value) for value in values if value)
