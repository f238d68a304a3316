"""The identity of a server: a uuid in `roost_meta` that tells its database from all others.

All servers of a database have its identity, and a restored backup keeps it. So has a copy of the
database, until an operator gives the copy an identity of its own.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from roost.model.identifiers import new_uuid
from roost.store.tables import roost_meta

_IS_IT = roost_meta.c.name == "identity"


def read_identity(connection: Connection) -> str | None:
    """The identity; `None` before an older database has got one."""
    return connection.scalar(select(roost_meta.c.value).where(_IS_IT))


def ensure_identity(connection: Connection) -> None:
    """Give the database an identity, unless it has one; `IntegrityError` in a race."""
    if read_identity(connection) is None:
        connection.execute(insert(roost_meta).values(name="identity", value=new_uuid()))


def renew_identity(connection: Connection) -> None:
    """Give the database another identity, because it is a copy that goes its own way."""
    ensure_identity(connection)
    connection.execute(update(roost_meta).where(_IS_IT).values(value=new_uuid()))
