"""After a crash of the database, candidates show the rows that it kept, and no lost row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from roost.model.consumers import Claim
from roost.service.tables.claims import claim_for_one
from roost.store.connections.errors import ConnectionLost
from roost.store.connections.sessions import Session
from roost.store.database import Database, DatabaseOptions
from roost.store.journal.following import Following, ServerReplaced
from roost.store.journal.position import JournalLost
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names
from roost.store.transaction import Transaction
from support.api_client import ApiClient, in_process_client
from support.servers.killable_databases import (
    PrivateMariaDB,
    PrivatePostgreSQL,
    own_mariadb,
    own_postgresql,
)
from support.store.journal import Reader, ids, record, rolled_back, start, writing

# So many transactions are rolled back before a crash. PostgreSQL reuses their numbers afterwards.
REFUSED = 8
TRIES = 3
# The server may write a commit to disk early. One of so many crashes must lose a row.
LOSSES_TRIED = 10


@contextmanager
def prepared(url: str) -> Iterator[Database]:
    """A database with schema and standard names."""
    database = Database(DatabaseOptions(url=url))
    try:
        prepare_schema(database, upgrade=True)
        database.write(sync_standard_names)
        yield database
    finally:
        database.close()


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PrivatePostgreSQL]:
    with own_postgresql() as server:
        yield server


@pytest.fixture
def mariadb() -> Iterator[PrivateMariaDB]:
    with own_mariadb() as server:
        yield server


@pytest.fixture
def crashing(postgresql: PrivatePostgreSQL) -> Iterator[Database]:
    """A database of a PostgreSQL server that may be killed."""
    made = postgresql.databases.create()
    with prepared(made.url) as database:
        yield database


def refuse_writes(database: Database) -> None:
    """Roll transactions back. The server does not write their numbers to disk."""
    for _ in range(REFUSED):
        with rolled_back(database) as connection:
            record(connection, 90)


def reconnect(database: Database) -> None:
    """Drop the connections that the crash broke."""
    database.release()


class TestPostgreSQLBackendKilled:
    def test_a_position_reads_transactions_whose_numbers_are_used_again(
        self, crashing: Database, postgresql: PrivatePostgreSQL
    ) -> None:
        reader = Reader(crashing, start(crashing))
        for number in range(2, 2 + TRIES):
            # The commit writes the numbers of all transactions so far to disk.
            crashing.write_at_once(record, 1)
            refuse_writes(crashing)
            assert reader.read() == [1]
            postgresql.kill_backend()
            reconnect(crashing)
            crashing.write_at_once(record, number)
            # More transactions than before the crash hide from the reader that numbers went back.
            refuse_writes(crashing)
            refuse_writes(crashing)
            assert reader.read() == [number]
            assert reader.read() == []

    def test_a_position_notices_that_a_row_below_the_newest_was_lost(
        self, crashing: Database, postgresql: PrivatePostgreSQL
    ) -> None:
        """A crash loses only transactions with `synchronous_commit` off."""
        postgresql.databases.execute(
            "ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()"
        )
        crashing.write_at_once(record, 1)
        for _ in range(LOSSES_TRIED):
            reader = Reader(crashing, start(crashing))
            with writing(crashing) as late:
                late.exec_driver_sql("SET LOCAL synchronous_commit = off")
                record(late, 2)
                crashing.write_at_once(record, 3)
                assert reader.read() == [3]
            assert reader.read() == [2]
            before = ids(crashing)
            postgresql.kill_backend()
            reconnect(crashing)
            if ids(crashing) != before:
                with pytest.raises(JournalLost, match="lost"):
                    reader.read()
                return
            assert reader.read() == []
        pytest.fail(f"PostgreSQL lost no row in {LOSSES_TRIED} crashes; raise LOSSES_TRIED")

    def test_a_reader_goes_on_over_another_connection_but_not_after_a_crash(
        self, crashing: Database, postgresql: PrivatePostgreSQL
    ) -> None:
        following = Following(crashing)
        following.begin(lambda _: None)
        end_session(crashing, "SELECT pg_terminate_backend({})", "SELECT pg_backend_pid()")
        assert over_new_connection(following) == 1
        postgresql.kill_backend()
        with pytest.raises(ServerReplaced):
            over_new_connection(following)
        following.begin(lambda _: None)
        assert following.read(one) == 1

    def test_candidates_and_usages_agree(
        self, crashing: Database, postgresql: PrivatePostgreSQL, tmp_path: Path
    ) -> None:
        api = in_process_client(crashing, tmp_path)
        for _ in range(TRIES):
            host = make_host(api)
            assert used_by_candidates(api, host) == 0
            refuse_claims(api, host)
            assert used_by_candidates(api, host) == 0
            postgresql.kill_backend()
            reconnect(crashing)
            assert claim(api, host, 1) == 204
            refuse_claims(api, host)
            refuse_claims(api, host)
            usages = api.get(f"/resource_providers/{host}/usages").json["usages"]
            assert usages == {"VCPU": 1}
            assert used_by_candidates(api, host) == 1


@pytest.mark.long
class TestMariaDBKilled:
    """MariaDB writes commits to disk from time to time, so a kill loses the last commits."""

    def test_a_position_notices_that_a_row_below_the_newest_was_lost(
        self, mariadb: PrivateMariaDB
    ) -> None:
        with prepared(mariadb.databases.create().url) as database:
            database.write_at_once(record, 1)
            reader = Reader(database, start(database))
            with writing(database) as late:
                record(late, 2)
                database.write_at_once(record, 3)
                mariadb.flush()
                assert reader.read() == [3]
            assert reader.read() == [2]
            before = ids(database)
            mariadb.kill()
            mariadb.start()
            reconnect(database)
            assert ids(database) == [id_ for id_ in before if id_ != before[-2]]
            with pytest.raises(JournalLost, match="lost"):
                reader.read()

    def test_a_reader_goes_on_over_another_connection_but_not_after_a_restart(
        self, mariadb: PrivateMariaDB
    ) -> None:
        with prepared(mariadb.databases.create().url) as database:
            following = Following(database)
            following.begin(lambda _: None)
            end_session(database, "KILL {}", "SELECT CONNECTION_ID()")
            assert over_new_connection(following) == 1
            mariadb.kill()
            mariadb.start()
            with pytest.raises(ServerReplaced):
                over_new_connection(following)

    def test_a_position_goes_on_if_no_row_was_lost(self, mariadb: PrivateMariaDB) -> None:
        with prepared(mariadb.databases.create().url) as database:
            reader = Reader(database, start(database))
            database.write_at_once(record, 1, 2)
            assert reader.read() == [1, 2]
            mariadb.flush()
            mariadb.kill()
            mariadb.start()
            reconnect(database)
            database.write_at_once(record, 3)
            assert reader.read() == [3]

    def test_candidates_and_usages_agree(self, mariadb: PrivateMariaDB, tmp_path: Path) -> None:
        with prepared(mariadb.databases.create().url) as database:
            api = in_process_client(database, tmp_path)
            host = make_host(api)
            with writing(database) as late:
                # In the journal, the row of this claim is below the row of the new host.
                claim = Claim(str(uuid4()), {host: {"VCPU": 1}}, "late", "late", None)
                Transaction(late).run(lambda part: claim_for_one(part, claim))
                make_host(api)
                mariadb.flush()
                assert used_by_candidates(api, host) == 0
            assert used_by_candidates(api, host) == 1
            mariadb.kill()
            mariadb.start()
            reconnect(database)
            assert api.get(f"/resource_providers/{host}/usages").json["usages"] == {"VCPU": 0}
            assert used_by_candidates(api, host) == 0


def one(connection: Connection) -> int:
    found: int = connection.exec_driver_sql("SELECT 1").scalar_one()
    return found


def over_new_connection(following: Following) -> int:
    """Read over the connection that replaces a lost one."""
    with pytest.raises(ConnectionLost):
        following.read(one)
    return following.read(one)


def end_session(database: Database, kill: str, own_id: str) -> None:
    """Make the server end the session over which readers follow the journal."""
    with Session(database.followers, 5) as connection:
        id_ = connection.exec_driver_sql(own_id).scalar_one()
    database.read(lambda connection: connection.exec_driver_sql(kill.format(id_)).close())


def make_host(api: ApiClient) -> str:
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def claim(api: ApiClient, host: str, amount: int) -> int:
    body = {
        "allocations": {host: {"resources": {"VCPU": amount}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return api.put(f"/allocations/{uuid4()}", body).status


def refuse_claims(api: ApiClient, host: str) -> None:
    for _ in range(REFUSED):
        assert claim(api, host, 99) == 409


def used_by_candidates(api: ApiClient, host: str) -> int:
    answer = api.get("/allocation_candidates?resources=VCPU:1").json
    used: int = answer["provider_summaries"][host]["resources"]["VCPU"]["used"]
    return used
