"""COMMIT: whether it was sent, and what an error after that means.

Before COMMIT was sent, every error means that nothing was written. Afterwards, only an error by
which the database itself refuses the transaction means that. A lost connection, an ended session
and a failure of the driver leave the outcome open: the database may have carried COMMIT out.
"""

from __future__ import annotations

from roost.store.dialect import Dialect


class Commit:
    """The COMMIT of one transaction."""

    __slots__ = ("_dialect", "_first_error", "is_sent")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.is_sent = False
        self._first_error: Exception | None = None

    def note(self, error: Exception) -> None:
        """Record an error. Later ones may be those of a ROLLBACK, and say nothing about COMMIT."""
        self._first_error = self._first_error or error

    def leaves_open(self, error: Exception) -> bool:
        """Whether the transaction that ended with this error may have taken effect."""
        return self.is_sent and not self._dialect.is_refusal(self._first_error or error)
