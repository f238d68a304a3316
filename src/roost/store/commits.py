"""COMMIT: whether it was sent, and what an error after that means.

Before COMMIT was sent, every error means that nothing was written. Afterwards, only an error by
which the database itself refuses the transaction means that. A lost connection, an ended session
and a failure of the driver leave the outcome open: the database may have carried COMMIT out.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

from roost.store.errors import ends_session, mysql_code_of, server_code_of, sqlstate_of

# PostgreSQL: class 08 tells of a lost connection, also that of a proxy to the server. 40003 is
# `statement_completion_unknown`.
_POSTGRESQL_OPEN = ("08", "40003")
# MySQL and MariaDB may replace the success of a COMMIT by these errors: the statement or session
# was killed or took too long, a log could not be written, a node of Galera lost its cluster. The
# codes below 1000 are those of the server's files.
_MYSQL_OPEN = frozenset(
    {1026, 1030, 1105, 1180, 1181, 1317, 1598, 1815, 1969, 3024, 3169, 4031, *range(1000)}
)
# SQLite refuses a COMMIT by these, and rolls back. After any other error, such as a failed fsync,
# the log may have the whole transaction: whichever process opens the file next finds it.
_SQLITE_REFUSALS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CONSTRAINT,
    }
)


class Commit:
    """The COMMIT of one transaction."""

    __slots__ = ("_first_error", "is_sent")

    def __init__(self) -> None:
        self.is_sent = False
        self._first_error: Exception | None = None

    def note(self, error: Exception) -> None:
        """Record an error. Later ones may be those of a ROLLBACK, and say nothing about COMMIT."""
        self._first_error = self._first_error or error

    def leaves_open(self, error: Exception) -> bool:
        """Whether the transaction that ended with this error may have taken effect."""
        return self.is_sent and not is_refusal(self._first_error or error)


def is_refusal(error: Exception) -> bool:
    """Whether the database itself says by this error that it did not carry out the transaction."""
    if not isinstance(error, DBAPIError) or error.connection_invalidated:
        return False
    if isinstance(error.orig, sqlite3.Error):
        # The low byte is the kind of error, the rest says more about it.
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return code & 0xFF in _SQLITE_REFUSALS
    if server_code_of(error) is None or ends_session(error):
        return False
    sqlstate = sqlstate_of(error)
    if sqlstate is not None:
        return not sqlstate.startswith(_POSTGRESQL_OPEN)
    return mysql_code_of(error) not in _MYSQL_OPEN
