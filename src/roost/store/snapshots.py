"""Snapshots: several statements that read the same moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

P = ParamSpec("P")
T = TypeVar("T")

# The statements that begin a transaction whose reads all see the same moment.
_MYSQL_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
_BEGIN_SNAPSHOT = {
    "sqlite": ("BEGIN",),
    "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",),
    "mysql": _MYSQL_SNAPSHOT,
    "mariadb": _MYSQL_SNAPSHOT,
}


def in_one_moment(
    connection: Connection,
    work: Callable[Concatenate[Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """What `work` returns; all its statements see the same moment."""
    for statement in _BEGIN_SNAPSHOT[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    try:
        return work(connection, *args, **kwargs)
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")
