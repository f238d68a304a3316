"""Consumers, and their projects, users and consumer types."""

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
from roost.store.statements import CHUNK_LENGTH, InsertRows, Statement, UpdateRows, chunks
from roost.store.tables import consumer_types, consumers, projects, resource_classes, users, utc_now

_LOCK = (
    select(
        consumers.c.id,
        consumers.c.uuid,
        consumers.c.generation,
        consumers.c.project_id,
        consumers.c.user_id,
        consumers.c.consumer_type_id,
    )
    .order_by(consumers.c.id)
    .with_for_update()
)
_LOCK_BY_UUIDS = Statement(lambda uuids: _LOCK.where(consumers.c.uuid.in_(uuids)), lists=["uuids"])
_LOCK_BY_IDS = Statement(lambda ids: _LOCK.where(consumers.c.id.in_(ids)), lists=["ids"])
_IDS = Statement(
    lambda uuids: select(consumers.c.id).where(consumers.c.uuid.in_(uuids)), lists=["uuids"]
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
_REASSIGN = UpdateRows(consumers, ["project_id", "user_id", "consumer_type_id"])
_DELETE = Statement(lambda ids: delete(consumers).where(consumers.c.id.in_(ids)), lists=["ids"])


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


# One statement for all names of a claim, because each round trip makes a claim slower.
_LOOK_UP = Statement(_names_of, lists=["classes", "projects_", "users_", "types"])


class ConsumerOwner(NamedTuple):
    """The project, the user and the type of a consumer."""

    project_id: int
    user_id: int
    consumer_type_id: int | None


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A row of a consumer; `uuid` has the spelling of the row."""

    id: int
    uuid: str
    generation: int
    owner: ConsumerOwner


@dataclass(frozen=True, slots=True)
class Names:
    """The internal ids of the names that a claim uses; unknown names are missing."""

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
    """The ids of all names of a claim; new projects, users and consumer types are inserted."""
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
    # A claim has a few names. Only a very large POST needs several statements.
    for parameters in _aligned_chunks(wanted):
        for kind, id_, name in _LOOK_UP.run(connection, parameters):
            targets[kind][name] = id_
    _PROJECTS.ensure(connection, project_names, names.projects)
    _USERS.ensure(connection, user_names, names.users)
    _TYPES.ensure(connection, type_names, names.types)
    return names


def _aligned_chunks(wanted: dict[str, Collection[str]]) -> Iterable[dict[str, Sequence[str]]]:
    pieces = {name: list(chunks(values)) for name, values in wanted.items()}
    for index in range(max(len(chunk_list) for chunk_list in pieces.values())):
        yield {
            name: chunk_list[index] if index < len(chunk_list) else []
            for name, chunk_list in pieces.items()
        }


class _NameTable:
    """A table of names; a claim inserts a name when it first uses it."""

    def __init__(self, column: Column[str]) -> None:
        self._column = column
        self._insert = InsertRows(column.table, unless_taken=column)
        self._ids = Statement(
            lambda names: select(column, column.table.c.id).where(column.in_(names)),
            lists=["names"],
        )

    def ensure(
        self, connection: Connection, wanted: Collection[str], known: dict[str, int]
    ) -> None:
        """Insert the names that are not known, and add them to `known`."""
        # Sorted, so that two requests with the same new names do not deadlock.
        missing = sorted(set(wanted) - known.keys())
        if not missing:
            return
        now = utc_now()
        new = [{"created_at": now, self._column.name: name} for name in missing]
        self._insert.run(connection, new)
        known |= dict(map(tuple, self._ids.rows(connection, missing)))
        for name in missing:
            if name not in known:
                # The default collations of MySQL find the row of `abc` for `ABC`.
                ((_, known[name]),) = self._ids.run(connection, {"names": [name]})


_PROJECTS = _NameTable(projects.c.external_id)
_USERS = _NameTable(users.c.external_id)
_TYPES = _NameTable(consumer_types.c.name)


def lock_consumers(connection: Connection, uuids: Iterable[str]) -> list[ConsumerRow]:
    """The existing consumers with these uuids in any spelling, locked until the transaction ends.

    All transactions lock consumers before providers.
    """
    spellings = [spelling for uuid in uuids for spelling in uuid_spellings(uuid)]
    if len(spellings) <= CHUNK_LENGTH:
        rows = _LOCK_BY_UUIDS.rows(connection, spellings)
    else:
        # In the order of the ids. On MySQL two spellings may find the same row.
        ids = {id_ for (id_,) in _IDS.rows(connection, spellings)}
        rows = _LOCK_BY_IDS.rows(connection, sorted(ids))
    return [ConsumerRow(row.id, row.uuid, row.generation, ConsumerOwner(*row[3:])) for row in rows]


def insert_consumers(connection: Connection, new: Sequence[tuple[str, ConsumerOwner]]) -> None:
    """Insert consumers; `IntegrityError` if another transaction has inserted one of them."""
    now = utc_now()
    stamps = {"created_at": now, "updated_at": now, "generation": 1}
    _INSERT.run(connection, [stamps | {"uuid": uuid, **owner._asdict()} for uuid, owner in new])


def reassign_consumers(
    connection: Connection, changed: Sequence[tuple[int, ConsumerOwner]]
) -> None:
    """Update the projects, users and types of locked consumers."""
    _REASSIGN.run(connection, [{"id": id_, **owner._asdict()} for id_, owner in changed])


def increment_consumers(connection: Connection, ids: Sequence[int]) -> None:
    """Increment the generations of locked consumers."""
    _INCREMENT.apply(connection, ids, {"one": 1, "now": utc_now()})


def delete_consumers(connection: Connection, ids: Sequence[int]) -> None:
    """Delete locked consumers that have no allocations."""
    _DELETE.apply(connection, ids)
