"""Connections of PyMySQL that need fewer round trips.

They send no COMMIT or ROLLBACK outside a transaction. Other drivers behave so by themselves.
SQLAlchemy commits after a batch that has committed, and rolls back each connection that it returns
to the pool. Each of these would be a round trip. A batch is one text with several statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, event

from roost.store.statements import BoundStatement

if TYPE_CHECKING:
    from roost.store.commits import Commit

# `CLIENT.MULTI_STATEMENTS`: a text may have several statements.
_MULTI_STATEMENTS = 1 << 16
# The error code for a connection that is lost during a statement.
_SERVER_LOST = 2013


def use_sparing_connections(engine: Engine) -> None:
    """Let an engine open such connections, which take several statements in one text."""
    # Imported here, because not every installation has the driver.
    from pymysql import Connection  # noqa: PLC0415

    class SparingConnection(Connection):
        """A connection that knows whether it has sent a statement since its last COMMIT."""

        is_idle = False

        def query(self, sql: Any, unbuffered: bool = False) -> int:
            self.is_idle = False
            return super().query(sql, unbuffered)

        def commit(self) -> None:
            if not self.is_idle:
                super().commit()
                self.is_idle = True

        def rollback(self) -> None:
            if not self.is_idle:
                super().rollback()
                self.is_idle = True

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
        flags = options.get("client_flag", 0) | _MULTI_STATEMENTS
        return SparingConnection(*arguments, **options | {"client_flag": flags})


def run_as_one_text(
    raw: Any, statements: Sequence[BoundStatement], commit: Commit | None
) -> list[list[Any]]:
    """For PyMySQL: the server executes nothing after a statement that fails."""
    results: list[list[Any]] = []
    cursor = raw.cursor()
    try:
        texts = [cursor.mogrify(text, parameters) for text, parameters in statements]
        if commit is not None:
            texts.append("COMMIT")
            commit.is_sent = True
        cursor.execute(";".join(texts))
        for number in range(len(statements)):
            if number:
                _require_next(raw, cursor)
            results.append(list(cursor.fetchall()) if cursor.description else [])
        if commit is not None:
            _require_next(raw, cursor)
            raw.is_idle = True
    finally:
        cursor.close()
    return results


def _require_next(raw: Any, cursor: Any) -> None:
    """Go to the result of the next statement; a server that leaves it out counts as lost."""
    if not cursor.nextset():
        raise raw.OperationalError(_SERVER_LOST, "the server ended a batch early")
