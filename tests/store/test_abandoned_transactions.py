"""A host that dies in the middle of a write keeps no lock for long."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store import tables
from roost.store.database import Database, DatabaseOptions
from roost.store.dialect import Dialect
from support.store.schemas import add_provider

UUID = "11111111-1111-1111-1111-111111111111"


def rename(connection: Connection, name: str) -> None:
    providers = tables.resource_providers
    connection.execute(sa.update(providers).where(providers.c.uuid == UUID).values(name=name))


# SQLite frees the locks of a process that ends, and has no other hosts.
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_the_locks_of_a_silent_server_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.write_at_once(add_provider, uuid=UUID, root=True)
    monkeypatch.setattr(Dialect, "idle_seconds_max", 1)
    silent = Database(DatabaseOptions(url=database.options.url))
    with silent.engine.connect() as connection:
        rename(connection, "silent")
        # Without the limit, waiting for the lock would end after ten seconds, in vain.
        database.write_at_once(rename, "alive")
        connection.invalidate()
    silent.close()
    with database.engine.connect() as connection:
        assert connection.scalar(sa.select(tables.resource_providers.c.name)) == "alive"
