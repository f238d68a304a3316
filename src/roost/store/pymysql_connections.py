"""Connections of PyMySQL that send no COMMIT or ROLLBACK outside a transaction.

Other drivers behave so by themselves. SQLAlchemy commits after a batch that has committed, and
rolls back each connection that it returns to the pool. Each of these would be a round trip.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, event

# `CLIENT.MULTI_STATEMENTS`: a text may have several statements.
_MULTI_STATEMENTS = 1 << 16


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
