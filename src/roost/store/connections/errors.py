"""The errors of the store, and what an error of a driver means."""

from __future__ import annotations

from sqlalchemy.exc import (
    DataError,
    IntegrityError,
    OperationalError,
)

from roost.model.errors import OperatorError

# The commands that errors tell an operator to run.
SYNC_COMMAND = "roost db sync"
REPAIR_COMMAND = "roost db sync --repair"


class DatabaseUnusable(OperatorError):
    """The database cannot be used as it is; the message says what to do."""


class Busy(Exception):
    """A writer waited too long for others, or at the write gate. Nothing was written."""


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
    """A connection broke in use. After COMMIT was sent, it is an `OutcomeUnknown`."""


class DatabaseSilent(DatabaseAway):
    """The database did not answer in time. After COMMIT was sent, it is an `OutcomeUnknown`."""


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


def reason_of(error: BaseException) -> str:
    """What the driver says, in one line, without an error code.

    >>> reason_of(OSError("no route to host.\\n  Is the server running?"))
    'no route to host'
    """
    original = getattr(error, "orig", None) or error
    arguments = getattr(original, "args", ())
    text = str(arguments[-1] if arguments else original).strip()
    return text.splitlines()[0].rstrip(".") if text else type(original).__name__


def retry_cause(error: Exception) -> str:
    """Why a write that met this error runs again, in one word."""
    if isinstance(error, ConnectionLost):
        return "connection"
    return "race" if isinstance(error, (Retry, IntegrityError)) else "lock"


def migration_lasts(name: str | None, seconds: int) -> DatabaseUnusable:
    """The error for a process that has waited this long for the migration of another process."""
    return DatabaseUnusable(
        f"Another process has been migrating the database {name!r} for more than {seconds} "
        f"seconds. Wait until it has finished, or end it, and then run: {SYNC_COMMAND}"
    )
