"""The errors of the store, and what an error of a driver means."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
)

from roost.model.errors import OperatorError

# The commands that errors tell an operator to run.
SYNC_COMMAND = "roost db sync"
REPAIR_COMMAND = "roost db sync --repair"

# PostgreSQL: serialisation failure, deadlock, statement cancelled. A lock timeout is not transient:
# another wait would only keep a thread busy.
_POSTGRESQL_TRANSIENT = frozenset({"40001", "40P01", "57014"})
# MySQL and MariaDB: deadlock, record changed since last read, statement cancelled.
_MYSQL_TRANSIENT = frozenset({1213, 1020, 1317})
# The server ends its sessions, or is not ready for clients. 1047 comes from a node of Galera.
_POSTGRESQL_GONE = "57P"
_POSTGRESQL_ENDING = frozenset({"FATAL", "PANIC"})
_MYSQL_GONE = frozenset({1047, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927})
# The errors of the drivers themselves, which also raise errors with the code 0 or without a code.
_MYSQL_DRIVER_CODES = range(2000, 3000)

_POSTGRESQL_READ_ONLY = "25006"


class DatabaseUnusable(OperatorError):
    """The database cannot be used as it is; the message says what to do."""


class Busy(Exception):
    """The queue of writers did not advance in time. Nothing was written."""


class Contention(OperatorError):
    """A write failed at each of its attempts. Nothing was written."""

    @property
    def explanation(self) -> str:
        """The text with its cause."""
        return f"{self}: {self.__cause__}. `roost db check` may tell why."


class Retry(Exception):
    """Another transaction changed what this one has read: this one must run again."""


class DatabaseAway(OperatorError):
    """The database cannot be reached, or refuses this process. Nothing was written."""

    @property
    def explanation(self) -> str:
        """The text with what to do."""
        return f"The database cannot be used: {self}. Check that the server runs, then try again."


class ConnectionLost(DatabaseAway):
    """A connection broke in use, before anything could be committed."""


class DatabaseSilent(DatabaseAway):
    """The database did not answer in time, before anything could be committed."""


class OutcomeUnknown(DatabaseAway):
    """COMMIT was sent and not answered clearly: the write took effect, or it did not."""

    def __init__(self, text: str, *, lost: bool = True) -> None:
        """`lost` says whether the connection was lost, or the database failed otherwise."""
        super().__init__(text)
        self.lost = lost

    @property
    def explanation(self) -> str:
        """The text with what to do."""
        return (
            f"The last write to the database may have been carried out or not: {self}. Check that "
            "the server runs, and look before you repeat the write."
        )


class WriteRefused(OperatorError):
    """The database refuses writes at the moment. Nothing was written."""

    @property
    def explanation(self) -> str:
        """The text with what to do."""
        return f"The database cannot write: {self}. Remove the cause, then try again."


class StatementFailed(Exception):
    """The database could not carry out a statement, through no fault of the statement."""


class ValueRefused(Exception):
    """The database cannot store a value."""


def meaning_of(error: Exception) -> Exception:
    """The error of the store that an error of SQLAlchemy means; any other error unchanged."""
    match error:
        case OperationalError():
            return StatementFailed(reason_of(error))
        case DataError():
            return ValueRefused(reason_of(error))
        case _:
            return error


def is_transient(error: DBAPIError) -> bool:
    """Whether another attempt at the same transaction may succeed."""
    return sqlstate_of(error) in _POSTGRESQL_TRANSIENT or mysql_code_of(error) in _MYSQL_TRANSIENT


def is_read_only(error: DBAPIError) -> bool:
    """Whether the server refuses writes: it is a standby, or becomes one."""
    return sqlstate_of(error) == _POSTGRESQL_READ_ONLY


def is_lost(error: Exception) -> bool:
    """Whether the error means that the connection cannot be used any more."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, OSError)
    return (
        error.connection_invalidated
        or isinstance(error, InterfaceError)
        or ends_session(error)
        or _is_of_driver(error)
    )


def ends_session(error: DBAPIError) -> bool:
    """Whether the server ends the session with this error."""
    return mysql_code_of(error) in _MYSQL_GONE or says_goodbye(error.orig)


def says_goodbye(original: BaseException | None) -> bool:
    """Whether PostgreSQL ends the session with this error of its driver."""
    severity = getattr(getattr(original, "diag", None), "severity_nonlocalized", None)
    return severity in _POSTGRESQL_ENDING or (_sqlstate(original) or "").startswith(
        _POSTGRESQL_GONE
    )


def server_code_of(error: DBAPIError) -> object:
    """The code by which a server names its error; `None` if the driver itself raised the error."""
    code = mysql_code_of(error)
    is_of_server = isinstance(code, int) and code > 0 and code not in _MYSQL_DRIVER_CODES
    return sqlstate_of(error) or (code if is_of_server else None)


def _is_of_driver(error: DBAPIError) -> bool:
    """Whether the driver of a server failed by itself: it no longer understands the server."""
    return (
        isinstance(error, (OperationalError, InternalError))
        and not isinstance(error.orig, sqlite3.Error)
        and server_code_of(error) is None
    )


def reason_of(error: BaseException) -> str:
    """What the driver says, in one line, without the error code of MySQL.

    >>> reason_of(OSError("no route to host.\\n  Is the server running?"))
    'no route to host'
    """
    original = getattr(error, "orig", None) or error
    arguments = getattr(original, "args", ())
    text = str(arguments[-1] if arguments else original).strip()
    return text.splitlines()[0].rstrip(".") if text else type(original).__name__


def sqlstate_of(error: DBAPIError) -> str | None:
    """The code of an error of PostgreSQL; `None` for other databases."""
    return _sqlstate(error.orig)


def _sqlstate(original: BaseException | None) -> str | None:
    # psycopg 3 calls it sqlstate, psycopg2 pgcode.
    return getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)


def mysql_code_of(error: DBAPIError) -> object:
    """The code of an error of MySQL or MariaDB; anything else for other databases."""
    return next(iter(getattr(error.orig, "args", ())), None)


def retry_cause(error: Exception) -> str:
    """Why a write that met this error runs again, in one word."""
    if isinstance(error, ConnectionLost):
        return "connection"
    return "race" if isinstance(error, (Retry, IntegrityError)) else "lock"
