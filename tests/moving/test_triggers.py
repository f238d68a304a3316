"""Triggers: Roost sees what the reference writes to the same database."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from sqlalchemy import Connection
from sqlalchemy.pool import NullPool

from roost.cli.main import cli
from roost.model.identifiers import new_uuid
from roost.store import tables
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Level
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.journal.triggers import install_triggers, remove_triggers, trigger_status
from roost.store.journal.writing import record_usages
from roost.store.migrations.schema import sync_schema
from roost.store.transaction import Finished, Transaction
from support.api_client import ApiClient
from support.change_feed import all_changes, now, request_id
from support.moving.shared_database import MakeApi, SharedDatabase
from support.properties import many
from support.scenarios.answers import faults, read_answer
from support.scenarios.cloud import Ask, Cloud, Writer, clearing
from support.scenarios.oracle import SHARING, candidates
from support.scenarios.requests import Request
from support.scenarios.scenario import Scenario, drawing, readable, tell
from support.store.schemas import describe
from support.worlds.notation import provider_uuid

pytestmark = pytest.mark.slow

# A write of the reference takes ten times as long as a write of Roost.
EXAMPLES = many(1)
# Questions that the forest answers. The reference has no defect in them without sharing providers.
LISTS = (
    "/resource_providers?resources=VCPU:1",
    "/resource_providers?resources=CUSTOM_GOLD:1,DISK_GB:1",
    "/resource_providers?required=CUSTOM_T1",
)
CANDIDATES = "/allocation_candidates?resources=VCPU:1"


@pytest.fixture
def triggers(shared_database: SharedDatabase) -> Iterator[SharedDatabase]:
    """A database with triggers, which other tests get without them."""
    install_triggers(shared_database.roost)
    yield shared_database
    remove_triggers(shared_database.roost)


@pytest.fixture
def untouched(database: Database) -> Iterator[None]:
    """Further tests use the same database, and expect no triggers."""
    yield
    remove_triggers(database)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["db", "triggers", *arguments])


def asking(api: ApiClient) -> Ask:
    def ask(method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
        answer = api.at(version).request(method, path, body)
        return answer.status, answer.json if answer.body else None

    return ask


def listed(api: ApiClient, path: str) -> Any:
    answer = api.get(path)
    # A name that does not exist yet is refused by both, in different words.
    return answer.json["resource_providers"] if answer.status == 200 else answer.status


def in_order(providers: Any) -> Any:
    return (
        sorted(providers, key=lambda one: one["uuid"]) if isinstance(providers, list) else providers
    )


def placed(api: ApiClient) -> list[str]:
    """The candidates of a small request, in one order."""
    return sorted(
        json.dumps(found["allocations"], sort_keys=True)
        for found in api.get(CANDIDATES).json["allocation_requests"]
    )


class Comparison:
    """Plays scenarios: the reference writes, and Roost answers after every write."""

    def __init__(self, reference: ApiClient, roost: ApiClient) -> None:
        self.reference, self.roost = reference, roost
        self.lists = cycle(LISTS)
        self.writer = Writer(asking(reference))
        self.played = self.compared = 0

    def play(self, scenario: Scenario) -> None:
        self.played += 1
        if self.played > EXAMPLES:
            return
        cloud = Cloud()
        try:
            for step in scenario.steps:
                if isinstance(step, Request):
                    self._check_with_oracle(cloud, step)
                    continue
                step.send(self.writer)
                cloud = step.apply(cloud)
                self._compare(cloud)
        finally:
            for write in clearing(cloud):
                write.send(self.writer)
        assert placed(self.roost) == []

    def _compare(self, cloud: Cloud) -> None:
        path = next(self.lists)
        ours, theirs = (in_order(listed(api, path)) for api in (self.roost, self.reference))
        assert ours == theirs, readable(f"{path}\nworld: {drawing(cloud.world())}")
        if not any(SHARING in provider.traits for provider in cloud.providers.values()):
            assert placed(self.roost) == placed(self.reference), readable(drawing(cloud.world()))
            self.compared += 1

    def _check_with_oracle(self, cloud: Cloud, request: Request) -> None:
        answer = self.roost.at(request.version).get(request.path)
        if request.mishap or answer.status != 200:
            assert request.mishap, answer.body
            return
        world = cloud.world()
        right = candidates(world, request.query)
        found = read_answer(answer.json, request.query.minor)
        wrong = "\n".join(faults(world, request.query, right, found))
        assert not wrong, readable(f"{wrong}\nworld: {drawing(world)}")


@pytest.mark.hypothesis
def test_roost_answers_as_the_reference_after_every_write_of_the_reference(
    triggers: SharedDatabase, make_api: MakeApi
) -> None:
    comparison = Comparison(triggers.reference.client(), make_api(triggers.roost))
    tell(EXAMPLES, comparison.play)
    assert comparison.compared > 0


def test_without_triggers_roost_does_not_see_a_write_of_the_reference(
    shared_database: SharedDatabase, make_api: MakeApi
) -> None:
    """So the tests of this module can fail."""
    roost, reference = make_api(shared_database.roost), shared_database.reference.client()
    assert placed(roost) == []
    uuid = provider_uuid("unseen")
    put_provider(reference, uuid)
    assert placed(roost) == []
    assert len(placed(reference)) == 1
    assert reference.delete(f"/resource_providers/{uuid}").status == 204


def test_readers_that_run_notice_the_installation_and_what_was_written_before(
    shared_database: SharedDatabase, make_api: MakeApi
) -> None:
    roost, reference = make_api(shared_database.roost), shared_database.reference.client()
    assert placed(roost) == []
    uuid = provider_uuid("early")
    put_provider(reference, uuid)
    install_triggers(shared_database.roost)
    assert placed(roost) == placed(reference) != []
    assert reference.delete(f"/resource_providers/{uuid}").status == 204
    assert placed(roost) == []
    remove_triggers(shared_database.roost)


def test_both_services_write_at_once_and_agree(triggers: SharedDatabase, make_api: MakeApi) -> None:
    """Sums in the journal rest on locks that the reference does not take."""
    roost, reference = make_api(triggers.roost), triggers.reference.client()
    uuid = provider_uuid("both")
    put_provider(reference, uuid, total=1000)
    consumers = [provider_uuid(f"consumer {number}") for number in range(40)]

    def claim_and_release(api: ApiClient, its: list[str]) -> None:
        for consumer in its:
            body = {
                "allocations": {uuid: {"resources": {"VCPU": 1}}},
                "project_id": "p",
                "user_id": "u",
            }
            # The reference answers 500 where SQLite is locked.
            api.at("1.27").put(f"/allocations/{consumer}", body)
            if consumer not in its[-3:]:
                api.delete(f"/allocations/{consumer}")
            api.get(CANDIDATES)

    clients = (make_api(triggers.roost), triggers.reference.client())
    threads = [
        threading.Thread(target=claim_and_release, args=(client, consumers[number::2]))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert usage(reference, uuid) > 0
    for api in (roost, make_api(triggers.roost), *clients):
        summary = api.get(CANDIDATES).json["provider_summaries"][uuid]["resources"]["VCPU"]
        assert summary["used"] == usage(reference, uuid)
    for consumer in consumers:
        reference.delete(f"/allocations/{consumer}")
    assert reference.delete(f"/resource_providers/{uuid}").status == 204


def test_changes_tell_the_writer_of_roost_and_none_of_the_reference(
    triggers: SharedDatabase, make_api: MakeApi
) -> None:
    roost, reference = make_api(triggers.roost), triggers.reference.client()
    uuid = provider_uuid("both")
    put_provider(reference, uuid, total=1000)
    since, ours = now(roost), set()

    def claim_often(api: ApiClient) -> None:
        for _ in range(15):
            body = {
                "allocations": {uuid: {"resources": {"VCPU": 1}}},
                "project_id": "p",
                "user_id": "u",
            }
            path = f"/allocations/{new_uuid()}"
            answer = api.at("1.27").put(path, body)
            if api is roost:
                assert answer.status == 204
                ours.add(request_id(answer))
            api.delete(path)

    threads = [threading.Thread(target=claim_often, args=(api,)) for api in (roost, reference)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = all_changes(roost, since, page_limit=5)
    assert {change["provider"]["uuid"] for change in found} == {uuid}
    told = {change["request_id"] for change in found}
    # Releases of Roost have requests of their own.
    assert ours < told
    assert None in told
    unknown = [change for change in found if change["request_id"] is None]
    assert all(one["user_id"] is None and one["project_id"] is None for one in unknown)
    assert reference.delete(f"/resource_providers/{uuid}").status == 204


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_readers_believe_no_sums_while_other_programs_write(
    database: Database, api: ApiClient, untouched: None
) -> None:
    """A release of the reference takes no lock, so sums of a concurrent claim may be wrong."""
    uuid = provider_uuid("summed")
    install_triggers(database)
    put_provider(api, uuid)
    assert len(placed(api)) == 1

    def record_wrong_sums(transaction: Transaction) -> Finished[None]:
        query = sa.select(tables.resource_providers.c.id)
        provider_id = transaction.connection.scalars(query).one()
        record_usages(transaction, [(provider_id, uuid, {0: 8})])
        return transaction.finish()

    database.write(record_wrong_sums)
    assert len(placed(api)) == 1
    remove_triggers(database)
    assert len(placed(api)) == 1
    database.write(record_wrong_sums)
    # Without triggers, only Roost writes, and its sums are right.
    assert placed(api) == []


def usage(api: ApiClient, uuid: str) -> int:
    used: int = api.get(f"/resource_providers/{uuid}/usages").json["usages"]["VCPU"]
    return used


def put_provider(api: ApiClient, uuid: str, total: int = 8) -> None:
    made = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    assert made.status == 200, made.body
    body = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": total}},
    }
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200


def test_writes_of_roost_have_one_row_each_where_the_database_tells_connections_apart(
    database: Database, api: ApiClient, untouched: None
) -> None:
    install_triggers(database)
    uuid = provider_uuid("ours")
    before = journal_length(database)
    put_provider(api, uuid)
    rows = journal_length(database) - before
    with database.engine.connect() as connection:
        tells = connection.dialect.name != "sqlite" or hasattr(
            connection.connection.dbapi_connection, "setconfig"
        )
    assert rows == (2 if tells else 5)


def journal_length(database: Database) -> int:
    def count(connection: Connection) -> int:
        query = sa.select(sa.func.count()).select_from(tables.roost_changes)
        return connection.scalar(query) or 0

    return database.read(count)


def test_a_generation_alone_writes_no_row(triggers: SharedDatabase) -> None:
    """Every claim of the reference changes generations, which a forest does not have."""
    reference = triggers.reference.client()
    uuid = provider_uuid("regenerated")
    put_provider(reference, uuid)
    before = journal_length(triggers.roost)
    unchanged = {"aggregates": [], "resource_provider_generation": 1}
    answer = reference.put(f"/resource_providers/{uuid}/aggregates", unchanged)
    assert answer.json["resource_provider_generation"] == 2
    assert journal_length(triggers.roost) == before
    assert reference.delete(f"/resource_providers/{uuid}").status == 204


def test_a_name_that_the_reference_gives_reaches_the_forest(
    triggers: SharedDatabase, make_api: MakeApi
) -> None:
    roost, reference = make_api(triggers.roost), triggers.reference.client()
    uuid = provider_uuid("renamed")
    put_provider(reference, uuid)
    assert [row[1] for row in roost.get("/roost/overview").json["rows"]] == [uuid]
    assert reference.put(f"/resource_providers/{uuid}", {"name": "another name"}).status == 200
    assert [row[1] for row in roost.get("/roost/overview").json["rows"]] == ["another name"]
    assert reference.delete(f"/resource_providers/{uuid}").status == 204


def test_the_tables_stay_as_they_are(database: Database, untouched: None) -> None:
    before = describe(database)
    install_triggers(database)
    assert describe(database) == before
    remove_triggers(database)
    assert describe(database) == before
    assert database.read(trigger_status).is_absent


def test_the_commands_install_tell_and_remove(database: Database, untouched: None) -> None:
    url = database.options.url
    absent = run("status", "--json", "--db", url)
    assert (absent.exit_code, json.loads(absent.output)["state"]) == (3, "absent")
    assert run("install", "--dry-run", "--db", url).output.count("CREATE TRIGGER") == 21
    assert run("status", "--db", url).exit_code == 3
    for _ in range(2):
        assert run("install", "--db", url).exit_code == 0
        assert run("status", "--db", url).exit_code == 0
    remove_one(database)
    incomplete = run("status", "--db", url)
    assert incomplete.exit_code == 3
    assert "roost_journal_v3_traits_insert" in incomplete.output
    assert "DROP TRIGGER" in run("remove", "--dry-run", "--db", url).output
    assert run("remove", "--db", url).exit_code == 0
    assert run("status", "--db", url).exit_code == 3


def remove_one(database: Database) -> None:
    name = "roost_journal_v3_traits_insert"
    on_table = " ON traits" if database.engine.dialect.name == "postgresql" else ""
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TRIGGER {name}{on_table}")


def test_a_sync_completes_triggers_that_are_not_complete(
    database: Database, untouched: None
) -> None:
    install_triggers(database)
    remove_one(database)
    outcome = CliRunner().invoke(cli, ["db", "sync", "--db", database.options.url])
    assert outcome.exit_code == 0, outcome.output
    assert "triggers" in outcome.output
    assert database.read(trigger_status).is_complete
    remove_triggers(database)


def make_older_form(database: Database) -> None:
    """Give a trigger and its function the names and the form of the first version."""
    with database.engine.begin() as connection:
        for statement in (
            "ALTER FUNCTION roost_journal_v3_traits() RENAME TO roost_journal_v1_traits",
            "ALTER FUNCTION roost_journal_v1_traits() RESET search_path",
            "ALTER TRIGGER roost_journal_v3_traits_insert ON traits"
            " RENAME TO roost_journal_v1_traits_insert",
        ):
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_triggers_of_the_older_form_are_outdated_and_a_sync_replaces_them(
    database: Database, untouched: None
) -> None:
    install_triggers(database)
    make_older_form(database)
    told = json.loads(run("status", "--json", "--db", database.options.url).output)
    assert told["outdated"] == ["roost_journal_v1_traits_insert"]
    outcome = CliRunner().invoke(cli, ["db", "sync", "--db", database.options.url])
    assert outcome.exit_code == 0, outcome.output
    assert database.read(trigger_status).is_complete
    functions = sa.text("SELECT proname FROM pg_proc WHERE proname LIKE 'roost_journal_v1%'")
    assert database.read(lambda connection: connection.scalars(functions).all()) == []


# A schema of the intruder with an operator that records the rights under which it runs.
INTRUSION = (
    "CREATE TABLE intrusion.seen (name text)",
    "CREATE FUNCTION intrusion.differs(integer, integer) RETURNS boolean LANGUAGE sql AS"
    " 'INSERT INTO intrusion.seen VALUES (current_user); SELECT true'",
    "CREATE OPERATOR intrusion.<> (leftarg = integer, rightarg = integer,"
    " function = intrusion.differs)",
)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_writer_cannot_use_the_rights_of_the_owner_of_the_triggers(
    database: Database, untouched: None, make_api: MakeApi
) -> None:
    put_provider(make_api(database), provider_uuid("intruded"))
    install_triggers(database)
    with database.engine.connect() as connection, connection.begin() as transaction:
        connection.exec_driver_sql("CREATE SCHEMA intrusion")
        for statement in INTRUSION:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("SET LOCAL search_path = intrusion, pg_catalog, public")
        connection.exec_driver_sql("SET LOCAL application_name = 'another'")
        changed = connection.exec_driver_sql("UPDATE public.inventories SET total = total + 1")
        assert changed.rowcount
        assert connection.exec_driver_sql("SELECT name FROM intrusion.seen").all() == []
        attachable = "SELECT has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc"
        rights = connection.exec_driver_sql(f"{attachable} WHERE proname LIKE 'roost_journal_%%'")
        assert set(rights.scalars()) == {False}
        transaction.rollback()


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_triggers_work_in_a_schema_other_than_the_first_of_the_search_path(
    database_url: str,
) -> None:
    url = f"{database_url}?options=-csearch_path%3D%22The-Cloud%22"
    both = f"{database_url}?options=-csearch_path%3Dpublic%2C%22The-Cloud%22"
    plain = Database(DatabaseOptions(url=database_url))
    with closing(plain), plain.engine.begin() as connection:
        connection.exec_driver_sql('CREATE SCHEMA "The-Cloud"')
    with closing(Database(DatabaseOptions(url=url))) as database:
        sync_schema(database)
        with closing(Database(DatabaseOptions(url=both))) as another:
            install_triggers(another)
        assert database.read(trigger_status).is_complete
        before = journal_length(database)
        with database.engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL application_name = 'another'")
            connection.exec_driver_sql("SET LOCAL search_path = pg_catalog")
            connection.exec_driver_sql(
                "INSERT INTO \"The-Cloud\".traits (name) VALUES ('CUSTOM_ELSEWHERE')"
            )
        assert journal_length(database) == before + 1
        remove_triggers(database)
        assert database.read(trigger_status).is_absent


def test_a_database_that_is_not_adopted_has_no_journal_for_triggers(database_url: str) -> None:
    outcome = run("install", "--db", database_url)
    assert outcome.exit_code != 0
    assert "roost db sync" in str(outcome.exception)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_a_table_that_a_transaction_holds_is_explained(
    database: Database, untouched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.store.databases.mysql._TABLE_WAIT_SECONDS", 1)
    with database.engine.begin() as holding:
        holding.execute(sa.text("SELECT count(*) FROM allocations"))
        holding.execute(sa.text("INSERT INTO traits (name) VALUES ('CUSTOM_HELD')"))
        with closing(Database(replace(database.options))) as impatient:
            with impatient.engine.connect() as connection:
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql("SET lock_timeout = '100ms'")
                    connection.commit()
            with pytest.raises(DatabaseUnusable, match="run the same command again"):
                install_triggers(impatient)
        holding.rollback()
    install_triggers(database)
    assert database.read(trigger_status).is_complete


def test_triggers_without_their_table_are_told_and_removed(database_url: str) -> None:
    """An operator has dropped the tables of Roost before the triggers."""
    with closing(Database(DatabaseOptions(url=database_url))) as database:
        sync_schema(database)
        install_triggers(database)
        with database.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE roost_changes")
            connection.exec_driver_sql("DROP TABLE roost_meta")
        insert = "INSERT INTO traits (name) VALUES ('CUSTOM_A')"
        # An engine of its own, as another program has it.
        other = sa.create_engine(database.url, poolclass=NullPool)
        with other.connect() as connection, pytest.raises(sa.exc.DBAPIError):
            connection.exec_driver_sql(insert)
        finding = {found.name: found for found in database.read(check_database)}["triggers"]
        assert finding.level is Level.FAILURE
        assert "every write fails" in finding.message
        assert finding.remedy == "Run: roost db triggers remove"
        told = run("status", "--db", database_url)
        assert told.exit_code == 3
        assert "roost db triggers remove" in told.output
        assert "roost db triggers remove" in str(run("install", "--db", database_url).exception)
        assert run("remove", "--db", database_url).exit_code == 0
        assert run("status", "--db", database_url).exit_code == 3
        with other.connect() as connection:
            connection.exec_driver_sql(insert)
