"""`roost db`: its output for operators, and its exit codes and JSON for scripts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import update

from roost.cli.main import cli
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.rows.vocabulary import sync_standard_names
from roost.store.tables import resource_classes
from support.store.schemas import make_older

pytestmark = pytest.mark.slow


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["db", *arguments])


def test_sync_initialises_a_database_and_a_second_sync_changes_nothing(database_url: str) -> None:
    first = run("sync", "--db", database_url)
    assert first.exit_code == 0
    assert "empty before" in first.output
    second = run("sync", "--db", database_url)
    assert second.exit_code == 0
    assert "current before" in second.output


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)
def test_a_dry_run_changes_nothing(database_url: str) -> None:
    assert run("sync", "--dry-run", "--db", database_url).exit_code == 0
    version = run("version", "--json", "--db", database_url)
    assert json.loads(version.output) == {"state": "empty", "placement": None, "roost": None}


@pytest.mark.parametrize("command", [["version"], ["sync", "--dry-run"]])
def test_commands_that_only_read_do_not_make_a_missing_file(
    tmp_path: Path, command: list[str]
) -> None:
    result = run(*command, "--db", f"sqlite:///{tmp_path}/typo.db")
    assert isinstance(result.exception, DatabaseUnusable)
    assert "roost db sync" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_check_fails_without_a_database(tmp_path: Path) -> None:
    assert run("check", "--db", f"sqlite:///{tmp_path}/typo.db").exit_code == 1


def test_sync_makes_the_directory_of_a_new_file(tmp_path: Path) -> None:
    assert run("sync", "--db", f"sqlite:///{tmp_path}/new/place/x.db").exit_code == 0


def test_version_names_the_revision_that_the_reference_knows(database_url: str) -> None:
    run("sync", "--db", database_url)
    assert "a082b8bb98d0" in run("version", "--db", database_url).output
    as_json = json.loads(run("version", "--json", "--db", database_url).output)
    assert as_json["placement"] == "a082b8bb98d0"
    assert as_json["state"] == "current"


def test_check_tells_a_good_database_from_a_bad_one(database_url: str) -> None:
    run("sync", "--db", database_url)
    database = Database(DatabaseOptions(url=database_url))
    database.write(sync_standard_names)
    good = run("check", "--json", "--db", database_url)
    assert good.exit_code == 0, good.output
    found = json.loads(good.output)
    assert {finding["level"] for finding in found["findings"]} == {"ok"}
    assert found["adoptable"] is True

    database.write_at_once(
        lambda connection: connection.execute(
            update(resource_classes).where(resource_classes.c.id == 0).values(name="NO_LONGER")
        )
    )
    database.close()
    bad = run("check", "--db", database_url)
    assert bad.exit_code == 3
    assert "VCPU" in bad.output


def test_an_unusable_url_is_explained(tmp_path: Path) -> None:
    for url, word in (
        ("oracle://somewhere/db", "oracle"),
        ("sqlite://", "memory"),
        ("not a url", "cannot be read"),
        ("postgresql://user@host:port/x", "cannot be read"),
        ("sqlite://relative.db", "three slashes"),
        (f"sqlite:///{tmp_path}/missing/x.db", "missing/x.db"),
    ):
        result = run("version", "--db", url)
        assert isinstance(result.exception, DatabaseUnusable)
        assert word in str(result.exception)


@pytest.mark.parametrize("command", [["--help"], ["db", "--help"], ["serve", "--help"]])
def test_help_shows_the_usage(command: list[str]) -> None:
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize(
    "command", [["check"], ["version"], ["sync", "--dry-run"], ["triggers", "status"]]
)
def test_commands_that_only_read_change_no_byte_of_a_file_of_the_reference(
    tmp_path: Path, command: list[str]
) -> None:
    file = tmp_path / "placement.sqlite"
    source = tmp_path / "source.sqlite"
    with closing(Database(DatabaseOptions(url=f"sqlite:///{source}"))) as database:
        make_older(database, "a082b8bb98d0")
    with closing(sqlite3.connect(source)) as connection:
        # The reference does not use a write-ahead log.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"VACUUM INTO '{file}'")
    before = file.read_bytes()
    result = run(*command, "--db", f"sqlite:///{file}")
    assert result.exit_code in (0, 3), result.output
    assert file.read_bytes() == before
    assert list(tmp_path.glob("placement.sqlite*")) == [file]
