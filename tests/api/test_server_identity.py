"""`GET /roost/server`: the identity of the database, on every server of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, delete

from roost.bootstrap import open_database
from roost.cli.main import cli
from roost.model.identifiers import is_uuid
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database
from roost.store.meta import renew_identity
from roost.store.migrations.schema import sync_schema
from roost.store.tables import roost_meta
from support.api_client import ApiClient, settings_for


def forget_identity(connection: Connection) -> None:
    """Leave the database as an older version leaves it."""
    connection.execute(delete(roost_meta).where(roost_meta.c.name == "identity"))


def test_the_identity_is_a_uuid_and_the_same_at_every_version(api: ApiClient) -> None:
    answer = api.get("/roost/server")
    assert (answer.status, answer.json.keys()) == (200, {"identity"})
    assert is_uuid(answer.json["identity"])
    assert api.at("1.0").get("/roost/server").json == answer.json


def test_a_further_sync_and_start_keep_the_identity(
    api: ApiClient, database: Database, tmp_path: Path
) -> None:
    before = api.get("/roost/server").json
    sync_schema(database)
    open_database(settings_for(database, tmp_path)).close()
    assert api.get("/roost/server").json == before


@pytest.mark.parametrize("by", ["sync", "start"])
def test_an_older_database_gets_an_identity(
    api: ApiClient, database: Database, tmp_path: Path, by: str
) -> None:
    database.write_at_once(forget_identity)
    assert api.get("/roost/server").json == {"identity": None}
    if by == "sync":
        sync_schema(database)
    else:
        open_database(settings_for(database, tmp_path)).close()
    assert is_uuid(api.get("/roost/server").json["identity"])


def test_a_renewed_identity_is_told_at_once(api: ApiClient, database: Database) -> None:
    before = api.get("/roost/server").json
    database.write_at_once(renew_identity)
    after = api.get("/roost/server").json
    assert is_uuid(after["identity"])
    assert after != before


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_parameter_is_refused(api: ApiClient) -> None:
    assert api.get("/roost/server?identity=1").status == 400


# -- the command


def identity(url: str, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["db", "identity", "--db", url, *arguments])
    if result.exception is not None:
        raise result.exception
    return result.output.strip()


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_command_prints_and_renews_the_identity(database_url: str, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="roost db sync"):
        identity(database_url)
    assert CliRunner().invoke(cli, ["db", "sync", "--db", database_url]).exit_code == 0
    first = identity(database_url)
    assert is_uuid(first)
    assert identity(database_url) == first
    renewed = identity(database_url, "--renew")
    assert renewed != first
    assert identity(database_url) == renewed
