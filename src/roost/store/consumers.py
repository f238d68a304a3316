"""Consumers, and their projects, users and consumer types.

The functions for claims return statements, which a claim sends together in batches.
"""

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
from roost.store.statements import (
    CHUNK_LENGTH,
    BoundStatement,
    InsertRows,
    Statement,
    UpdateRows,
    chunks,
)
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


@dataclass(frozen=True, slots=True)
class WantedNames:
    """The names that claims use, of each kind."""

    classes: Collection[str]
    projects: Collection[str]
    users: Collection[str]
    types: Collection[str]


def looking_up_names(connection: Connection, wanted: WantedNames) -> list[BoundStatement]:
    """The statements that look the names up: one, unless a POST is very large."""
    lists = {
        "classes": wanted.classes,
        "projects_": wanted.projects,
        "users_": wanted.users,
        "types": wanted.types,
    }
    return [_LOOK_UP.bound(connection, values) for values in _aligned_chunks(lists)]


def found_names(rows: Iterable[Any]) -> Names:
    """The names in the rows of these statements."""
    names = Names({}, {}, {}, {})
    targets = {
        "class": names.classes,
        "project": names.projects,
        "user": names.users,
        "type": names.types,
    }
    for kind, id_, name in rows:
        targets[kind][name] = id_
    return names


def insert_missing_names(connection: Connection, wanted: WantedNames, names: Names) -> None:
    """Insert the projects, users and consumer types that were not found, and add them to `names`.

    Most claims use names that exist: then no statement is sent.
    """
    _PROJECTS.ensure(connection, wanted.projects, names.projects)
    _USERS.ensure(connection, wanted.users, names.users)
    _TYPES.ensure(connection, wanted.types, names.types)


def _aligned_chunks(wanted: dict[str, Collection[str]]) -> Iterable[dict[str, Sequence[str]]]:
    pieces = {name: list(chunks(values)) for name, values in wanted.items()}
    for index in range(max(map(len, pieces.values()))):
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


def locking_consumers(connection: Connection, uuids: Iterable[str]) -> list[BoundStatement]:
    """The statements that lock the consumers with these uuids in any spelling.

    All transactions lock consumers before providers.
    """
    spellings = [spelling for uuid in uuids for spelling in uuid_spellings(uuid)]
    if len(spellings) <= CHUNK_LENGTH:
        return _LOCK_BY_UUIDS.bound_chunks(connection, spellings)
    # In the order of the ids. On MySQL two spellings may find the same row.
    ids = {id_ for (id_,) in _IDS.rows(connection, spellings)}
    return _LOCK_BY_IDS.bound_chunks(connection, sorted(ids))


def locked_consumers(rows: Iterable[Any]) -> list[ConsumerRow]:
    """The consumers in the rows of these statements."""
    return [
        ConsumerRow(id_, uuid, generation, ConsumerOwner(*owner))
        for id_, uuid, generation, *owner in rows
    ]


def inserting_consumers(
    connection: Connection, new: Sequence[tuple[str, ConsumerOwner]]
) -> list[BoundStatement]:
    """Insert consumers; `IntegrityError` if another transaction has inserted one of them."""
    now = utc_now()
    stamps = {"created_at": now, "updated_at": now, "generation": 1}
    rows = [stamps | {"uuid": uuid, **owner._asdict()} for uuid, owner in new]
    return _INSERT.bound(connection, rows)


def reassigning_consumers(
    connection: Connection, changed: Sequence[tuple[int, ConsumerOwner]]
) -> list[BoundStatement]:
    """Update the projects, users and types of locked consumers."""
    rows = [{"id": id_, **owner._asdict()} for id_, owner in changed]
    return _REASSIGN.bound(connection, rows)


def incrementing_consumers(connection: Connection, ids: Sequence[int]) -> list[BoundStatement]:
    """Increment the generations of locked consumers."""
    return _INCREMENT.bound_chunks(connection, ids, {"one": 1, "now": utc_now()})


def deleting_consumers(connection: Connection, ids: Sequence[int]) -> list[BoundStatement]:
    """Delete locked consumers that have no allocations."""
    return _DELETE.bound_chunks(connection, ids)
