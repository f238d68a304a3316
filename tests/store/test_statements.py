"""Statements that are compiled once: lists of any length, also empty ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select

from roost.store.database import Database
from roost.store.statements import BoundStatement, InsertRows, Statement, UpdateRows
from roost.store.tables import projects
from roost.store.transaction import Finished, Transaction
from support.store.bulk_rows import write_rows

_IDS = Statement(
    lambda ids: select(projects.c.id).where(projects.c.id.in_(ids)).order_by(projects.c.id),
    lists=["ids"],
)
_DELETE = Statement(lambda ids: delete(projects).where(projects.c.id.in_(ids)), lists=["ids"])
_UPDATE = UpdateRows(projects, ["external_id"], common=["updated_at"])


def write(database: Database, bind: Callable[[Transaction], list[BoundStatement]]) -> None:
    """Execute the statements that `bind` returns."""

    def work(transaction: Transaction) -> Finished[None]:
        transaction.write(bind(transaction))
        return transaction.finish()

    database.write(work)


@pytest.fixture
def rows(database: Database) -> list[int]:
    """The ids of six hundred rows, too many for one statement."""
    # No sequence has reached these ids.
    ids = list(range(10_001, 10_601))
    named = [{"id": id_, "external_id": f"project {id_}"} for id_ in ids]
    database.write_at_once(write_rows, projects, named)
    return ids


def names(connection: Connection) -> list[str]:
    query = select(projects.c.external_id).order_by(projects.c.id)
    return list(connection.execute(query).scalars())


@pytest.mark.parametrize("length", [1, 2, 3, 9])
def test_a_statement_takes_lists_of_any_length(
    database: Database, rows: list[int], length: int
) -> None:
    def work(connection: Connection) -> list[Any]:
        return list(_IDS.run(connection, {"ids": rows[:length]}).scalars())

    assert database.read(work) == rows[:length]


def test_a_condition_on_an_empty_list_is_never_sent(database: Database, rows: list[int]) -> None:
    with pytest.raises(ValueError, match="empty list"):
        database.write_at_once(_DELETE.run, {"ids": []})
    write(database, lambda transaction: _DELETE.bound_chunks(transaction, []))
    assert database.read(_IDS.rows, []) == []
    assert len(database.read(names)) == len(rows)


def test_a_long_list_takes_several_executions(database: Database, rows: list[int]) -> None:
    found = database.read(_IDS.rows, rows)
    assert [id_ for (id_,) in found] == rows
    write(database, lambda transaction: _DELETE.bound_chunks(transaction, rows[:-1]))
    assert database.read(names) == ["project 10600"]


def test_an_update_gives_each_row_its_own_value(database: Database, rows: list[int]) -> None:
    changed = [{"id": id_, "external_id": f"now {id_}"} for id_ in rows[10:590]]
    write(database, lambda transaction: _UPDATE.bound(transaction, changed, {"updated_at": None}))
    assert database.read(names) == [
        *(f"project {id_}" for id_ in rows[:10]),
        *(f"now {id_}" for id_ in rows[10:590]),
        *(f"project {id_}" for id_ in rows[590:]),
    ]


@pytest.mark.parametrize("count", [1, 10, 100])
def test_an_insert_skips_rows_whose_value_is_taken(
    database: Database, rows: list[int], count: int
) -> None:
    insert = InsertRows(projects, unless_taken=projects.c.external_id)
    wanted = [f"project {rows[-1] - count // 2 + offset}" for offset in range(count)]
    new = [{"external_id": name} for name in wanted]
    write(database, lambda transaction: insert.bound(transaction, new))
    known = {f"project {id_}" for id_ in rows}
    assert sorted(database.read(names)) == sorted(known | set(wanted))
