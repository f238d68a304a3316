"""What can go wrong below the use cases."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError

from roost.model.errors import OperatorError

# PostgreSQL: serialisation failure, deadlock, statement cancelled. Who has waited for a lock until
# the time was up is not among them: waiting again would only keep a thread busy.
_POSTGRESQL_TRANSIENT = frozenset({"40001", "40P01", "57014"})
# MySQL and MariaDB: deadlock, record changed since last read, statement cancelled.
_MYSQL_TRANSIENT = frozenset({1213, 1020, 1317})
_MYSQL_ERROR_DURING_COMMIT = 1180
# The server ends its sessions, or does not work for clients yet; a node of Galera says 1047.
_POSTGRESQL_GONE = frozenset({"57P01", "57P02", "57P03"})
_MYSQL_GONE = frozenset({1047, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927})


_POSTGRESQL_READ_ONLY = "25006"


class DatabaseUnusable(OperatorError):
    """The database cannot be used as it is; the message says what to do."""


class Busy(Exception):
    """The queue of writers did not move for too long; nothing was written."""


class Contention(OperatorError):
    """A write was given up after as many attempts as allowed; nothing of it was written."""

    @property
    def explanation(self) -> str:
        """The text with its cause."""
        return f"{self}: {self.__cause__}. `roost db check` may tell why."


class Retry(Exception):
    """Another transaction was faster: this one must be run again from its beginning."""


class DatabaseAway(OperatorError):
    """The database cannot be reached, or does not let this process in. Nothing was written."""

    @property
    def explanation(self) -> str:
        """The text with what to do."""
        return f"The database cannot be used: {self}. Check that the server runs, then try again."


class ConnectionLost(DatabaseAway):
    """A connection broke while it was used, before anything could be committed."""


class DatabaseSilent(DatabaseAway):
    """The database did not answer in time, before anything could be committed."""


class OutcomeUnknown(DatabaseAway):
    """A connection was lost during COMMIT: the write was carried out, or it was not."""


class WriteRefused(OperatorError):
    """The database cannot carry out a write at the moment. Nothing was written."""

    @property
    def explanation(self) -> str:
        """The text with what to do."""
        return f"The database cannot write: {self}. When that is mended, try again."


def is_transient(error: DBAPIError) -> bool:
    """Whether the same transaction, run again, may well succeed."""
    return _state(error) in _POSTGRESQL_TRANSIENT or _number(error) in _MYSQL_TRANSIENT


def is_read_only(error: DBAPIError) -> bool:
    """Whether the server takes no writes: it is about to become, or to stop being, a standby."""
    return _state(error) == _POSTGRESQL_READ_ONLY


def is_lost(error: Exception) -> bool:
    """Whether the error means that the connection cannot be used any more."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, OSError)
    return (
        error.connection_invalidated
        or isinstance(error, InterfaceError)
        or _state(error) in _POSTGRESQL_GONE
        or _number(error) in _MYSQL_GONE
    )


def leaves_outcome_open(error: DBAPIError) -> bool:
    """Whether the server itself does not tell what became of a transaction at its COMMIT."""
    return _number(error) == _MYSQL_ERROR_DURING_COMMIT


def reason_of(error: BaseException) -> str:
    """What the driver says, in one line; MySQL's puts a number before it.

    >>> reason_of(OSError("no route to host.\\n  Is the server running?"))
    'no route to host'
    """
    original = getattr(error, "orig", None) or error
    arguments = getattr(original, "args", ())
    text = str(arguments[-1] if arguments else original).strip()
    return text.splitlines()[0].rstrip(".") if text else type(original).__name__


def _state(error: DBAPIError) -> str | None:
    # psycopg 3 and psycopg2 name it differently.
    return getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)


def _number(error: DBAPIError) -> object:
    return next(iter(getattr(error.orig, "args", ())), None)
