"""Consumers and what they belong to: projects, users, consumer types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    CompoundSelect,
    Connection,
    bindparam,
    delete,
    literal_column,
    select,
    union_all,
    update,
)

from roost.model.identifiers import uuid_spellings
from roost.store.clock import utc_now
from roost.store.rows import chunks, insert_row
from roost.store.statements import InsertRows, Statement
from roost.store.tables import consumer_types, consumers, projects, resource_classes, users

_LOCK = Statement(
    lambda uuids: (
        select(
            consumers.c.id,
            consumers.c.uuid,
            consumers.c.generation,
            consumers.c.project_id,
            consumers.c.user_id,
            consumers.c.consumer_type_id,
        )
        .where(consumers.c.uuid.in_(uuids))
        .order_by(consumers.c.id)
        .with_for_update()
    ),
    lists=["uuids"],
)
_INSERT = InsertRows(consumers)
_INCREMENT = Statement(
    lambda ids: (
        update(consumers)
        .where(consumers.c.id.in_(ids))
        .values(generation=consumers.c.generation + bindparam("one"), updated_at=bindparam("now"))
    ),
    lists=["ids"],
)
_REASSIGN = (
    update(consumers)
    .where(consumers.c.id == bindparam("_id"))
    .values(
        project_id=bindparam("_project_id"),
        user_id=bindparam("_user_id"),
        consumer_type_id=bindparam("_consumer_type_id"),
    )
)


def _names_of(
    classes: list[Any], projects_: list[Any], users_: list[Any], types: list[Any]
) -> CompoundSelect[Any]:
    return union_all(
        *(
            select(literal_column(f"'{kind}'").label("kind"), column.table.c.id, column).where(
                column.in_(wanted)
            )
            for kind, column, wanted in (
                ("class", resource_classes.c.name, classes),
                ("project", projects.c.external_id, projects_),
                ("user", users.c.external_id, users_),
                ("type", consumer_types.c.name, types),
            )
            if wanted
        )
    )


# One statement for all names of a claim, since each round trip counts there.
_LOOK_UP = Statement(_names_of, lists=["classes", "projects_", "users_", "types"])


class Owner(NamedTuple):
    """Whom a consumer belongs to, and what it is."""

    project_id: int
    user_id: int
    consumer_type_id: int | None


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A consumer as it is stored; `uuid` in the spelling of the row."""

    id: int
    uuid: str
    generation: int
    owner: Owner


@dataclass(frozen=True, slots=True)
class Names:
    """The internal ids behind the names that a claim uses; unknown names are missing."""

    classes: dict[str, int]
    projects: dict[str, int]
    users: dict[str, int]
    types: dict[str, int]


def ensure_names(
    connection: Connection,
    classes: Collection[str],
    project_names: Collection[str],
    user_names: Collection[str],
    type_names: Collection[str],
) -> Names:
    """The ids of all the names of a claim; projects, users and types that are new are made.

    `IntegrityError` if somebody was faster.
    """
    names = Names({}, {}, {}, {})
    targets = {
        "class": names.classes,
        "project": names.projects,
        "user": names.users,
        "type": names.types,
    }
    wanted = {
        "classes": classes,
        "projects_": project_names,
        "users_": user_names,
        "types": type_names,
    }
    # Claims name a handful; only a huge POST has to be cut into several statements.
    for parameters in _aligned_chunks(wanted):
        for kind, id_, name in _LOOK_UP.run(connection, parameters):
            targets[kind][name] = id_
    _ensure(connection, projects.c.external_id, project_names, names.projects)
    _ensure(connection, users.c.external_id, user_names, names.users)
    _ensure(connection, consumer_types.c.name, type_names, names.types)
    return names


def _aligned_chunks(wanted: dict[str, Collection[str]]) -> Iterable[dict[str, Sequence[str]]]:
    pieces = {name: list(chunks(values)) for name, values in wanted.items()}
    for index in range(max(len(chunk_list) for chunk_list in pieces.values())):
        yield {
            name: chunk_list[index] if index < len(chunk_list) else []
            for name, chunk_list in pieces.items()
        }


def _ensure(
    connection: Connection, column: Column[str], wanted: Collection[str], known: dict[str, int]
) -> None:
    """Add the missing ones to the table and to what is known."""
    table = column.table
    for name in sorted(set(wanted) - known.keys()):
        # MySQL's usual collations take ABC and abc for the same: ask it before inserting.
        id_ = connection.execute(select(table.c.id).where(column == name)).scalar()
        if id_ is None:
            id_ = insert_row(connection, table, {"created_at": utc_now(), column.name: name})
        known[name] = id_


def lock_consumers(connection: Connection, uuids: Iterable[str]) -> list[ConsumerRow]:
    """Those of the consumers that exist, in any spelling, locked until the transaction ends.

    Consumers are locked before providers, everywhere.
    """
    spellings = [spelling for uuid in uuids for spelling in uuid_spellings(uuid)]
    return [
        ConsumerRow(row.id, row.uuid, row.generation, Owner(*row[3:]))
        for chunk in chunks(spellings)
        for row in _LOCK.run(connection, {"uuids": chunk})
    ]


def insert_consumers(connection: Connection, new: Sequence[tuple[str, Owner]]) -> None:
    """Make consumers with their first allocations; `IntegrityError` if somebody was faster."""
    now = utc_now()
    stamps = {"created_at": now, "updated_at": now, "generation": 1}
    _INSERT.run(connection, [stamps | {"uuid": uuid, **owner._asdict()} for uuid, owner in new])


def reassign_consumers(connection: Connection, changed: Sequence[tuple[int, Owner]]) -> None:
    """Record another project, user or type."""
    rows = [
        {"_id": id_} | {f"_{name}": value for name, value in owner._asdict().items()}
        for id_, owner in changed
    ]
    if rows:
        connection.execute(_REASSIGN, rows)


def increment_consumers(connection: Connection, ids: Sequence[int]) -> None:
    """Move the generations of locked consumers on."""
    for chunk in chunks(ids):
        _INCREMENT.run(connection, {"ids": chunk, "one": 1, "now": utc_now()})


def delete_consumers(connection: Connection, ids: Sequence[int]) -> None:
    """Remove locked consumers that hold nothing any more."""
    for chunk in chunks(ids):
        connection.execute(delete(consumers).where(consumers.c.id.in_(chunk)))
