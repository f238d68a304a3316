"""A write ends with `finish`; its statements are sent in their order, and none is forgotten."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, bindparam, event
from sqlalchemy.exc import OperationalError

from roost.store.connections.errors import OutcomeUnknown
from roost.store.database import Database
from roost.store.statements import BoundStatement, InsertRows, Statement
from roost.store.tables import projects
from roost.store.transaction import Commit, Finished, Transaction

_INSERT = InsertRows(projects)
_NAMES = Statement(
    sa.select(projects.c.external_id)
    .where(projects.c.external_id == bindparam("name"))
    .order_by(projects.c.id)
)


def insert(transaction: Transaction, *names: str) -> None:
    rows = [{"created_at": transaction.now, "external_id": name} for name in names]
    transaction.write(_INSERT.bound(transaction, rows))


def named(transaction: Transaction, name: str) -> list[BoundStatement]:
    return [_NAMES.bound(transaction, {"name": name})]


def stored(database: Database) -> set[str]:
    query = sa.select(projects.c.external_id)
    return set(database.read(lambda connection: connection.scalars(query).all()))


def test_a_write_that_does_not_finish_is_refused_and_undone(database: Database) -> None:
    def forget(transaction: Transaction) -> Finished[None]:
        insert(transaction, "sent")
        assert transaction.read(named(transaction, "sent")) == [[("sent",)]]
        insert(transaction, "waiting")
        # The type checker refuses a write that returns nothing.
        return Finished(None)

    with pytest.raises(RuntimeError, match=r"without Transaction\.finish"):
        database.write(forget)
    assert stored(database).isdisjoint({"sent", "waiting"})


def test_a_part_that_does_not_finish_is_refused(database: Database) -> None:
    def forget(transaction: Transaction) -> Finished[None]:
        insert(transaction, "forgotten")
        return Finished(None)

    def work(transaction: Transaction) -> Finished[None]:
        insert(transaction, "whole")
        transaction.include(forget)
        return transaction.finish()

    with pytest.raises(RuntimeError, match=r"without Transaction\.finish"):
        database.write(work)
    assert stored(database).isdisjoint({"whole", "forgotten"})


@pytest.mark.parametrize(
    "use",
    [
        lambda transaction: insert(transaction, "late"),
        lambda transaction: transaction.read(named(transaction, "late")),
        lambda transaction: transaction.connection,
        lambda transaction: transaction.finish(),
    ],
    ids=["write", "read", "connection", "finish"],
)
def test_nothing_is_written_after_the_end(
    database: Database, use: Callable[[Transaction], Any]
) -> None:
    refusals: list[str] = []

    def work(transaction: Transaction) -> Finished[str]:
        insert(transaction, "in time")
        finished = transaction.finish("done")
        with pytest.raises(RuntimeError, match="after its end") as caught:
            use(transaction)
        refusals.append(str(caught.value))
        return finished

    assert database.write(work) == "done"
    assert refusals
    assert "in time" in stored(database)
    assert "late" not in stored(database)


def test_a_read_sees_the_writes_before_it(database: Database) -> None:
    def work(transaction: Transaction) -> Finished[None]:
        insert(transaction, "first")
        assert transaction.read(named(transaction, "first")) == [[("first",)]]
        insert(transaction, "second")
        query = sa.select(projects.c.external_id).where(projects.c.external_id == "second")
        assert transaction.connection.scalars(query).all() == ["second"]
        insert(transaction, "third")
        locked, found = transaction.lock(named(transaction, "third"), named(transaction, "first"))
        assert (locked, found) == ([("third",)], [("first",)])
        return transaction.finish()

    database.write(work)
    assert {"first", "second", "third"} <= stored(database)


def test_parts_take_effect_together(database: Database) -> None:
    def part(transaction: Transaction, name: str) -> Finished[str]:
        insert(transaction, name)
        return transaction.finish(f"inserted {name}")

    def work(transaction: Transaction, *, fails: bool) -> Finished[list[str]]:
        done = [transaction.include(part, name) for name in ("one", "two")]
        if fails:
            raise ValueError("refused")
        return transaction.finish(done)

    with pytest.raises(ValueError, match="refused"):
        database.write(work, fails=True)
    assert stored(database).isdisjoint({"one", "two"})
    assert database.write(work, fails=False) == ["inserted one", "inserted two"]
    assert {"one", "two"} <= stored(database)


def test_all_statements_of_a_write_share_a_round_trip_with_commit(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
        sent.append(statement)

    def work(transaction: Transaction) -> Finished[None]:
        for name in ("a", "b", "c"):
            insert(transaction, name)
        return transaction.finish()

    database.write(lambda transaction: transaction.finish())
    event.listen(database.engine, "before_cursor_execute", note)
    try:
        with caplog.at_level(logging.DEBUG, "roost.store.transaction"):
            database.write(work)
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    batches = [
        record.getMessage() for record in caplog.records if record.name == "roost.store.transaction"
    ]
    assert [batch.count("INSERT") for batch in batches] == [3]
    assert not sent


def test_writes_that_join_see_what_the_first_one_wrote(database: Database) -> None:
    seen: list[str] = []

    def join(connection: Connection) -> None:
        seen.extend(connection.scalars(sa.select(projects.c.external_id)))

    def work(transaction: Transaction) -> Finished[None]:
        insert(transaction, "of the first")
        return transaction.finish()

    with database.engine.connect() as connection, connection.begin():
        Transaction(connection, Commit(database.dialect), join).run(work)
    assert "of the first" in seen
    assert "of the first" in stored(database)


def test_an_error_of_rollback_does_not_answer_for_the_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_raw: object, _statements: object, commit: Commit | None) -> NoReturn:
        assert commit is not None
        commit.is_sent = True
        raise OSError("the answer to COMMIT was lost")

    def refuse(_connection: Connection) -> NoReturn:
        orig = sqlite3.OperationalError("full")
        orig.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise OperationalError(None, None, orig)

    def work(transaction: Transaction) -> Finished[None]:
        insert(transaction, "perhaps")
        return transaction.finish()

    monkeypatch.setattr(type(database.dialect), "batch_runner", lambda _dialect, _driver: lose)
    # A write that leads others sends its statements before COMMIT.
    monkeypatch.setattr(database, "_attempt", database._attempt_alone)
    event.listen(database.engine, "rollback", refuse)
    try:
        with pytest.raises(OutcomeUnknown):
            database.write(work)
    finally:
        event.remove(database.engine, "rollback", refuse)
        database.release()


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_statement_that_fails_before_commit_leaves_nothing_open(
    database: Database, is_first: bool
) -> None:
    # The server may also replace the success of a COMMIT by this error.
    interrupted = "SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317"
    attempts: list[int] = []

    def work(transaction: Transaction) -> Finished[None]:
        attempts.append(1)
        if len(attempts) == 1 and is_first:
            transaction.write([BoundStatement(interrupted, ())])
        insert(transaction, "at last")
        if len(attempts) == 1 and not is_first:
            transaction.write([BoundStatement(interrupted, ())])
        return transaction.finish()

    database.write(work)
    assert len(attempts) == 2
    assert "at last" in stored(database)
