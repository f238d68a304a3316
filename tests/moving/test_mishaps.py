"""What goes wrong while a cloud moves, and what the commands say then."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from databases import Databases
from ports import reserved_port
from roost.moving import importing
from roost.store.database import Database, DatabaseOptions
from roost.store.meta import ProgressMark, set_mark
from roost.store.migrations.schema import sync_schema
from support.api_client import ApiClient
from support.moving.sample_cloud import make_sample_cloud
from support.requirements import run as this_run
from support.roost_command import Outcome, roost
from support.waiting import SECONDS_MAX

pytestmark = pytest.mark.slow

sqlite_alone = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture
def file(database: Database, api: ApiClient, tmp_path: Path) -> Path:
    """An export of the sample cloud."""
    make_sample_cloud(api)
    path = tmp_path / "cloud.jsonl"
    assert roost("db", "export", str(path), "--db", database.options.url).status == 0
    return path


def import_(url: str, file: Path, *options: str) -> Outcome:
    return roost("db", "import", str(file), "--db", url, *options)


def interrupt(*_arguments: Any) -> None:
    raise KeyboardInterrupt


def export_to(stdout: Any, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "roost", "db", "export", "-", "--db", url],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@sqlite_alone
def test_a_full_disk_behind_an_export_is_told(file: Path, database: Database) -> None:
    with Path("/dev/full").open("wb") as full:
        done = export_to(full, database.options.url)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "The export cannot be written: No space left on device." in said
    assert "connection" not in said
    assert "Exception ignored" not in said


@sqlite_alone
def test_an_export_ends_quietly_with_the_program_that_reads_it(
    file: Path, database: Database
) -> None:
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        reader.wait()
        done = export_to(reader.stdin, database.options.url)
    assert (done.returncode, done.stderr) == (1, "")


@sqlite_alone
def test_a_stream_that_no_disk_can_hold_is_told(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("roost.moving.export_files.shutil.copyfileobj", full)
    target = tmp_path / "target.sqlite"
    refused = roost("db", "import", "-", "--db", f"sqlite:///{target}", stdin=file.read_text())
    assert refused.status == 1
    assert "No space left on device" in refused.err
    assert "TMPDIR" in refused.err
    assert not target.exists()


@sqlite_alone
def test_ctrl_c_is_status_130_and_an_import_says_how_to_continue(
    file: Path, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_verify", interrupt)
    ended = import_(f"sqlite:///{tmp_path}/target.sqlite", file)
    assert ended.status == 130
    assert "Run the same command again: it continues." in ended.err
    monkeypatch.setattr("roost.cli.server.db.inspect_schema", interrupt)
    other = roost("db", "version", "--db", database.options.url)
    assert other.status == 130
    assert "Abort" not in other.err
    assert "continues" not in other.err


def test_two_imports_at_once_do_not_blame_the_source(
    file: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = importing._Importer._write
    others: list[Outcome] = []

    def write_after_another_import(*arguments: Any) -> None:
        monkeypatch.setattr(importing._Importer, "_write", write)
        if not others:
            others.append(import_(database_url, file))
        write(*arguments)

    monkeypatch.setattr(importing._Importer, "_write", write_after_another_import)
    ended = import_(database_url, file)
    assert others[0].status == 0, others[0].err
    assert ended.status == 1
    assert "Another import writes to" in ended.err
    assert "source" not in ended.err


@sqlite_alone
def test_a_missing_file_and_an_empty_database_are_named(database_url: str, tmp_path: Path) -> None:
    missing = import_(database_url, tmp_path / "nosuch.jsonl")
    assert missing.status == 1
    assert "Errno" not in missing.err
    assert "nosuch.jsonl cannot be used: No such file or directory." in missing.err
    Path(database_url.removeprefix("sqlite:///")).touch()
    empty = roost("db", "export", str(tmp_path / "cloud.jsonl"), "--db", database_url)
    assert empty.status == 1
    assert "Is this the right database?" in empty.err


def test_a_server_that_does_not_answer_leaves_no_directory(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with reserved_port() as port:
        address = f"http://127.0.0.1:{port}"
        target = f"sqlite:///{tmp_path}/new.sqlite"
        options = ("--from-url", address, "--work-dir", str(work), "--db", target)
        ended = roost("import", *options)
    assert ended.status == 1
    assert "--from-url, ROOST_URL" in " ".join(ended.err.split())
    assert not work.exists()


@sqlite_alone
def test_no_triggers_are_installed_while_an_import_is_unfinished(database_url: str) -> None:
    with closing(Database(DatabaseOptions(url=database_url))) as database:
        sync_schema(database)
        database.write_at_once(set_mark, ProgressMark(17, "abc"))
    refused = roost("db", "triggers", "install", "--db", database_url)
    assert refused.status == 1
    assert "has not finished" in refused.err


@pytest.fixture
def reader_url(_makers: dict[str, Databases]) -> Iterator[str]:
    """A user of PostgreSQL with the right to read the tables alone."""
    if "postgresql" not in _makers:
        pytest.skip(f"no postgresql here: {this_run.missing['postgresql']}")
    made = _makers["postgresql"].create()
    name = f"reader_{made.url.rpartition('/')[2]}"
    with closing(Database(DatabaseOptions(url=made.url))) as database:
        sync_schema(database)
        with database.engine.begin() as connection:
            connection.exec_driver_sql(f'CREATE ROLE "{name}" LOGIN')
            connection.exec_driver_sql(f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "{name}"')
        yield database.url.set(username=name, password=None).render_as_string()
        with database.engine.begin() as connection:
            connection.exec_driver_sql(f'DROP OWNED BY "{name}"')
            connection.exec_driver_sql(f'DROP ROLE "{name}"')
    _makers["postgresql"].drop(made)


@sqlite_alone
def test_missing_rights_are_named(reader_url: str, file: Path) -> None:
    checked = roost("db", "check", "--db", reader_url)
    assert checked.status == 1
    assert "SELECT on all tables and sequences" in checked.err
    refused = import_(reader_url, file)
    assert refused.status == 1
    assert "Grant this user all rights" in refused.err
