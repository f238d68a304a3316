"""The life of a database server: from its start, or from its recovery after a crash, to the next.

Within one life, a server loses nothing that it has shown. So a reader that lost its connection may
go on over another one to the same life.
"""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from roost.store.journal.mysql import SERVER

# PostgreSQL recovers from a crash without a new start. It then resets all its statistics. `||`
# makes nothing of an unknown time, which `concat` would leave out.
_POSTGRESQL_LIFE = (
    "SELECT extract(epoch FROM pg_postmaster_start_time()) || ' '"
    " || extract(epoch FROM stats_reset) FROM pg_stat_bgwriter"
)
# The nodes of a cluster may have equal ids, and may have started in the same second.
_MYSQL_LIFE = f"SELECT CONCAT(@@hostname, ' ', @@port, ' ', {SERVER})"

_LIVES = {
    "postgresql": _POSTGRESQL_LIFE,
    "mysql": _MYSQL_LIFE,
    "mariadb": _MYSQL_LIFE,
}


def server_life(connection: Connection) -> str | None:
    """What tells this life of the server from all others; `None` if the server does not say."""
    try:
        life = connection.exec_driver_sql(_LIVES[connection.dialect.name]).scalar()
    except ProgrammingError:
        # An operator has taken the right to see it away.
        return None
    return None if life is None else str(life)
