"""The identity of the server, which clients keep with what they know of it."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.store.identity import read_identity


def show_identity(connection: Connection) -> str | None:
    """The identity of the database that the server serves."""
    return read_identity(connection)
