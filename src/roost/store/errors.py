"""What can go wrong below the use cases."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from roost.model.errors import OperatorError

# PostgreSQL: serialisation failure, deadlock, statement cancelled. Who has waited for a lock until
# the time was up is not among them: waiting again would only keep a thread busy.
_POSTGRESQL_TRANSIENT = frozenset({"40001", "40P01", "57014"})
# MySQL and MariaDB: deadlock, record changed since last read, statement cancelled.
_MYSQL_TRANSIENT = frozenset({1213, 1020, 1317})


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
    """Somebody else was faster: the transaction must be run again from its beginning."""


def is_transient(error: DBAPIError) -> bool:
    """Whether the same transaction, run again, may well succeed."""
    original = error.orig
    # psycopg 3 and psycopg2 name it differently.
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    if state in _POSTGRESQL_TRANSIENT:
        return True
    number = next(iter(getattr(original, "args", ())), None)
    return number in _MYSQL_TRANSIENT
