"""The file of an SQLite database: its mode, its owner, and its replacement."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ports import reserved_port
from roost.api.application import Application
from roost.bootstrap import open_database
from roost.configuration.settings import Settings, load_settings
from roost.model.identifiers import new_uuid
from roost.store.database import Database
from support.api_client import ApiClient, application_client
from support.roost_command import roost

CANDIDATES = "/allocation_candidates?resources=VCPU:1"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text("{}")
    config_file = tmp_path / "placement.conf"
    config_file.write_text(
        "[api]\nauth_strategy = noauth2\n[placement_database]\nsqlite_synchronous = false\n"
        f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\nenforce_new_defaults = false\n"
    )
    return load_settings([str(config_file)], f"sqlite:///{tmp_path}/data/roost.db")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "roost.db"


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    with closing(open_database(settings)) as database:
        yield database


@pytest.fixture
def api(settings: Settings, database: Database) -> ApiClient:
    return application_client(Application(settings, database))


def _add_host(api: ApiClient, name: str) -> str:
    uuid = new_uuid()
    assert api.post("/resource_providers", {"name": name, "uuid": uuid}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def _hosts(api: ApiClient) -> set[str]:
    answer = api.get(CANDIDATES)
    assert answer.status == 200
    return set(answer.json["provider_summaries"])


def _copy(file: Path, target: Path) -> None:
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(target)) as copied:
        source.backup(copied)


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-writer"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)


def test_new_files_are_readable_by_their_owner_only(api: ApiClient, file: Path) -> None:
    _add_host(api, "host")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == dict.fromkeys(
        ("roost.db", "roost.db-wal", "roost.db-shm", "roost.db-writer"), 0o600
    )
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_mode_of_an_existing_file_stays_and_a_check_reports_it(
    api: ApiClient, database: Database, file: Path
) -> None:
    database.close()
    file.chmod(0o664)
    Path(f"{file}-writer").unlink()
    _add_host(api, "host")
    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    # All users that may write the database may wait at its gate.
    assert stat.S_IMODE(Path(f"{file}-writer").stat().st_mode) == 0o664
    checked = roost("db", "check", "--db", f"sqlite:///{file}")
    assert checked.status == 3
    assert "chmod" in checked.out


def test_a_replaced_file_is_opened_again(api: ApiClient, file: Path, tmp_path: Path) -> None:
    old = _add_host(api, "old")
    _copy(file, tmp_path / "backup.db")
    lost = _add_host(api, "lost")
    assert _hosts(api) == {old, lost}
    _remove(file)
    shutil.move(tmp_path / "backup.db", file)
    assert _hosts(api) == {old}
    # The new file gets this write.
    new = _add_host(api, "new")
    assert _hosts(api) == {old, new}
    with closing(sqlite3.connect(file)) as connection:
        names = connection.execute("SELECT name FROM resource_providers ORDER BY id").fetchall()
    assert names == [("old",), ("new",)]


def test_the_log_of_an_earlier_file_does_not_corrupt_the_new_file(
    api: ApiClient, file: Path, tmp_path: Path
) -> None:
    old = _add_host(api, "old")
    _copy(file, tmp_path / "backup.db")
    _add_host(api, "lost")
    assert len(_hosts(api)) == 2
    before = (tmp_path / "backup.db").read_bytes()
    os.replace(tmp_path / "backup.db", file)
    assert api.get(CANDIDATES).status == 503
    assert api.post("/resource_providers", {"name": "x", "uuid": new_uuid()}).status == 503
    assert file.read_bytes() == before
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()
    assert _hosts(api) == {old}


def test_a_missing_file_is_not_replaced_by_an_empty_file(
    api: ApiClient, file: Path, tmp_path: Path
) -> None:
    old = _add_host(api, "old")
    assert _hosts(api) == {old}
    _copy(file, tmp_path / "backup.db")
    _remove(file)
    assert api.get(CANDIDATES).status == 503
    assert api.post("/resource_providers", {"name": "x", "uuid": new_uuid()}).status == 503
    assert not file.exists()
    shutil.move(tmp_path / "backup.db", file)
    assert _hosts(api) == {old}


def _foreign(path: Path, mode: str, *tables: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
            connection.execute(f"INSERT INTO {table} VALUES ('x')")
        connection.commit()


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize(
    "tables", [("notes",), ("users", "projects"), ("alembic_version", "notes")]
)
@pytest.mark.parametrize("command", [("db", "sync"), ("db", "check"), ("serve",)])
def test_a_file_of_another_application_is_refused_and_unchanged(
    tmp_path: Path,
    mode: str,
    tables: tuple[str, ...],
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roost.cli.serve.set_up_logging", lambda _settings: None)
    path = tmp_path / "app.db"
    _foreign(path, mode, *tables)
    before = path.read_bytes()
    with reserved_port() as port:
        options = ("--port", str(port)) if command == ("serve",) else ()
        refused = roost(*command, *options, "--db", f"sqlite:///{path}")
    assert refused.status in (1, 2)
    assert "another application" in refused.err
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["app.db"]


def test_an_empty_file_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert roost("db", "sync", "--db", f"sqlite:///{tmp_path}/empty.db").status == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_text("hello " * 500), "not a database"),
        (os.mkfifo, "no regular file"),
    ],
)
def test_a_path_that_is_no_database_file_is_refused(
    tmp_path: Path, make: object, words: str
) -> None:
    assert callable(make)
    path = tmp_path / "x.db"
    make(path)
    for command in ("sync", "version", "check"):
        refused = roost("db", command, "--db", f"sqlite:///{path}")
        assert refused.status in (1, 2)
        assert words in refused.err
        assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("closed", "name", "words"),
    [
        ("x.db", "x.db", "may not be written"),
        ("", "x.db", "keeps its log beside x.db"),
        ("", "new.db", "cannot be made"),
    ],
)
def test_a_path_that_the_user_may_not_write_is_refused(
    tmp_path: Path, closed: str, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert roost("db", "sync", "--db", f"sqlite:///{tmp_path}/x.db").status == 0
    # Root may write everything, so the test replaces the answer of the operating system.
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path / closed)
    refused = roost("db", "sync", "--db", f"sqlite:///{tmp_path}/{name}")
    assert refused.status == 1
    assert words in refused.err
