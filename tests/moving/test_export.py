"""`roost db export` and `roost db import`, between every two kinds of database."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from databases import KINDS, Databases
from roost.moving import importing
from roost.moving.export_format import ExportUnusable
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Level
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database, DatabaseOptions
from roost.store.dialect import Dialect
from roost.store.migrations.schema import inspect_schema, prepare_schema
from support.api_client import ApiClient
from support.moving.sample_cloud import change_sample_cloud, claim, make_sample_cloud
from support.moving.shared_database import MakeApi
from support.moving.whole_answers import whole_answers
from support.requirements import run as this_run
from support.roost_command import Outcome, roost
from support.store.schemas import make_older

pytestmark = pytest.mark.slow


@pytest.fixture
def target_url(request: pytest.FixtureRequest, _makers: dict[str, Databases]) -> Iterator[str]:
    """An empty database of the kind that the test names."""
    kind: str = request.param
    if kind not in _makers:
        pytest.skip(f"no {kind} here: {this_run.missing[kind]}")
    made = _makers[kind].create()
    yield made.url
    _makers[kind].drop(made)


@pytest.fixture
def cloud(database: Database, api: ApiClient) -> ApiClient:
    make_sample_cloud(api)
    return api


def export(database: Database, file: Path, *options: str) -> Outcome:
    return roost("db", "export", str(file), "--db", database.options.url, *options)


def import_(url: str, file: Path, *options: str) -> Outcome:
    return roost("db", "import", str(file), "--db", url, *options)


@pytest.fixture
def opened() -> Iterator[Callable[[str], Database]]:
    """Opens databases, which the end of the test closes."""
    databases: list[Database] = []

    def open_(url: str) -> Database:
        databases.append(Database(DatabaseOptions(url=url, sqlite_synchronous=False)))
        return databases[-1]

    yield open_
    for database in databases:
        database.close()


Opened = Callable[[str], Database]


@pytest.mark.parametrize("target_url", KINDS, indirect=True)
def test_an_import_answers_as_the_database_that_was_exported(
    *,
    cloud: ApiClient,
    database: Database,
    target_url: str,
    opened: Opened,
    make_api: MakeApi,
    tmp_path: Path,
) -> None:
    before = whole_answers(cloud)
    exported = export(database, tmp_path / "cloud.jsonl")
    assert exported.status == 0, exported.err
    done = import_(target_url, tmp_path / "cloud.jsonl", "--json")
    assert done.status == 0, done.err
    target = opened(target_url)
    api = make_api(target)
    # All databases show times in whole seconds.
    assert whole_answers(api) == before
    assert {finding.level for finding in target.read(check_database)} <= {Level.OK, Level.WARNING}
    # Ids that the database generates do not meet those of the import.
    change_sample_cloud(api)


@pytest.mark.parametrize("target_url", KINDS, indirect=True)
def test_owners_move_with_what_they_declared(
    *,
    api: ApiClient,
    database: Database,
    target_url: str,
    opened: Opened,
    make_api: MakeApi,
    tmp_path: Path,
) -> None:
    tree = {"providers": [{"name": "h", "inventories": {"VCPU": 4}, "traits": ["CUSTOM_A"]}]}
    assert api.put("/roost/trees/h?owner=me", tree).status == 200
    before = api.get("/roost/trees/h").json
    assert export(database, tmp_path / "owned.jsonl").status == 0
    assert import_(target_url, tmp_path / "owned.jsonl").status == 0
    moved = make_api(opened(target_url))
    assert moved.get("/roost/trees/h").json == before
    assert moved.put("/roost/trees/h?owner=me", {"providers": []}).status == 200
    assert moved.get("/resource_providers").json["resource_providers"] == []


def test_an_export_without_owners_is_one_that_older_versions_read(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    assert export(database, tmp_path / "cloud.jsonl").status == 0
    assert b"roost_" not in (tmp_path / "cloud.jsonl").read_bytes()


def test_equal_databases_of_two_kinds_have_equal_exports(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    kind = database.engine.dialect.name
    first, second, third = (tmp_path / f"{number}.jsonl" for number in range(3))
    export(database, first)
    url = f"sqlite:///{tmp_path}/copy.sqlite"
    assert import_(url, first).status == 0
    assert roost("db", "export", str(second), "--db", url).status == 0
    assert second.read_bytes() == first.read_bytes(), kind
    assert export(database, third).status == 0
    assert third.read_bytes() == first.read_bytes()


def test_a_compressed_export_has_the_same_lines(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    export(database, tmp_path / "plain.jsonl")
    export(database, tmp_path / "small.jsonl.gz")
    plain = (tmp_path / "plain.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "small.jsonl.gz").read_bytes()) == plain
    outcome = export(database, Path("-"))
    assert outcome.out.encode() == plain
    assert "exported" in outcome.err
    url = f"sqlite:///{tmp_path}/copy.sqlite"
    assert import_(url, tmp_path / "small.jsonl.gz").status == 0
    piped = f"sqlite:///{tmp_path}/piped.sqlite"
    assert roost("db", "import", "-", "--db", piped, stdin=plain.decode()).status == 0


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_damaged_compressed_export_is_named_wherever_it_is_damaged(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "small.jsonl.gz"
    export(database, file)
    good = file.read_bytes()
    # The bytes from 4 to 9 are the time and the system, which a reader ignores.
    for place in (2, 3, 10, 11, 12, len(good) // 2, len(good) - 8, len(good) - 4):
        for spoilt in (
            good[:place],
            bytes([*good[:place], good[place] ^ 0xFF, *good[place + 1 :]]),
        ):
            file.write_bytes(spoilt)
            refused = import_(f"sqlite:///{tmp_path}/copy.sqlite", file)
            assert refused.status == 1, f"{place}: {refused}"
            assert refused.err.startswith("roost: "), refused


@pytest.mark.parametrize("interrupted_after", [1, 9])
def test_an_import_continues_after_an_interruption(
    *,
    cloud: ApiClient,
    database: Database,
    database_url: str,
    opened: Opened,
    make_api: MakeApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interrupted_after: int,
) -> None:
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    monkeypatch.setattr(importing, "BATCH_ROWS", 7)
    write_batch = importing._write_batch
    calls: list[Any] = []

    def interrupted(*arguments: Any) -> None:
        if len(calls) == interrupted_after:
            raise KeyboardInterrupt
        calls.append(arguments)
        write_batch(*arguments)

    monkeypatch.setattr(importing, "_write_batch", interrupted)
    assert import_(database_url, file).status == 130
    target = opened(database_url)
    with pytest.raises(DatabaseUnusable, match="has not finished"):
        prepare_schema(target, upgrade=True)
    monkeypatch.setattr(importing, "_write_batch", write_batch)
    refused = roost("db", "export", str(tmp_path / "half.jsonl"), "--db", database_url)
    assert refused.status == 1
    assert "has not finished" in refused.err
    done = import_(database_url, file, "--json")
    assert done.status == 0, done.err
    assert done.json["resumed_lines"] > 0
    assert whole_answers(make_api(target)) == whole_answers(cloud)


def test_an_interrupted_import_goes_on_with_its_own_export_only(
    cloud: ApiClient, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    export(database, first)
    claim(cloud, "one more", "numa 1", "INSTANCE")
    export(database, second)
    url = f"sqlite:///{tmp_path}/copy.sqlite"

    def never(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(importing, "_verify", never)
        assert import_(url, first).status == 130
    refused = import_(url, second)
    assert refused.status == 1
    assert "another export" in refused.err
    assert import_(url, first).status == 0


def damaged(lines: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    rows = [number for number, line in enumerate(lines) if line.startswith(b"[")]
    middle = rows[len(rows) // 2]
    yield "cut off", lines[:middle]
    yield "half a line", [*lines[:middle], lines[middle][:-5]]
    yield "a row less", [*lines[:middle], *lines[middle + 1 :]]
    yield (
        "two rows in another order",
        [
            *lines[: middle - 1],
            lines[middle],
            lines[middle - 1],
            *lines[middle + 1 :],
        ],
    )
    yield "another value", [line.replace(b"4096", b"4097") for line in lines]
    yield "no header", lines[1:]
    yield "another version", [lines[0].replace(b'"version":1', b'"version":9'), *lines[1:]]
    yield "another schema", [lines[0].replace(b"a082b8bb98d0", b"abc"), *lines[1:]]
    yield "no JSON", [*lines[:middle], b"[1,\n", *lines[middle + 1 :]]
    yield "more lines", [*lines, b"{}\n"]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_damaged_export_is_refused_before_anything_is_written(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    good = tmp_path / "good.jsonl"
    export(database, good)
    for what, lines in damaged(good.read_bytes().splitlines(keepends=True)):
        bad = tmp_path / "bad.jsonl"
        bad.write_bytes(b"".join(lines))
        target = tmp_path / "target.sqlite"
        outcome = import_(f"sqlite:///{target}", bad)
        assert outcome.status == 1, what
        assert "Traceback" not in outcome.err
        assert not target.exists(), what


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_damaged_stream_is_refused_before_anything_is_written(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    good = tmp_path / "good.jsonl"
    export(database, good)
    whole = good.read_text()
    target = tmp_path / "target.sqlite"
    cut = whole[: whole.rindex('{"end"')]
    for options in ((), ("--dry-run",)):
        refused = roost("db", "import", "-", "--db", f"sqlite:///{target}", *options, stdin=cut)
        assert refused.status == 1
        assert "ends without a trailer" in refused.err
        assert not target.exists()
    tried = roost("db", "import", "-", "--db", f"sqlite:///{target}", "--dry-run", stdin=whole)
    assert "would import" in tried.out
    assert not target.exists()
    assert roost("db", "import", "-", "--db", f"sqlite:///{target}", stdin=whole).status == 0


def write_all(write_end: int, content: bytes) -> None:
    with os.fdopen(write_end, "wb") as stream:
        stream.write(content)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_pipe_in_place_of_a_file_is_a_stream(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    """A shell names a pipe so for the output of another command: `<(command)`."""
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    read_end, write_end = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(read_end):
        pool.submit(write_all, write_end, file.read_bytes())
        outcome = import_(f"sqlite:///{tmp_path}/piped.sqlite", Path(f"/dev/fd/{read_end}"))
    assert outcome.status == 0, outcome.err


def test_a_database_with_rows_is_refused_and_stays_as_it_is(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    before = whole_answers(cloud)
    for options in ((), ("--dry-run",)):
        refused = import_(database.options.url, file, *options)
        assert refused.status == 1
        assert "empty" in refused.err
    assert whole_answers(cloud) == before


def test_what_a_write_back_changes_is_noticed(
    cloud: ApiClient, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program writes to the database during the import."""
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    target = tmp_path / "copy.sqlite"
    verify = importing._verify

    def disturbed(*arguments: Any) -> None:
        with sqlite3.connect(target) as connection:
            connection.execute("UPDATE inventories SET total = total + 1")
        verify(*arguments)

    monkeypatch.setattr(importing, "_verify", disturbed)
    refused = import_(f"sqlite:///{target}", file)
    assert refused.status == 1
    assert "inventories" in refused.err


def test_dry_runs_write_nothing(cloud: ApiClient, database: Database, tmp_path: Path) -> None:
    file = tmp_path / "cloud.jsonl"
    counted = export(database, file, "--dry-run", "--json")
    assert counted.json["tables"]["resource_providers"]["rows"] == 9
    assert not file.exists()
    export(database, file)
    target = tmp_path / "target.sqlite"
    tried = import_(f"sqlite:///{target}", file, "--dry-run")
    assert tried.status == 0
    assert "would import" in tried.out
    assert not target.exists()


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_an_export_that_fails_leaves_no_file(
    cloud: ApiClient, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    again = export(database, file)
    assert again.status == 1
    assert "--overwrite" in again.err
    before = file.read_bytes()
    monkeypatch.setattr("roost.moving.export_format.trailer_line", failing)
    assert export(database, file, "--overwrite").status == 1
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.glob("cloud*")] == ["cloud.jsonl"]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_only_the_owner_reads_an_export_whatever_file_is_in_the_way(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    readable = tmp_path / "readable.jsonl.partial"
    readable.touch()
    readable.chmod(0o666)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "linked.jsonl.partial").symlink_to(victim)
    for name in ("readable.jsonl", "linked.jsonl"):
        assert export(database, tmp_path / name).status == 0
        assert stat.S_IMODE((tmp_path / name).lstat().st_mode) == 0o600
        assert not (tmp_path / name).is_symlink()
    assert victim.read_text() == "precious"


def failing(*_arguments: Any) -> bytes:
    raise ExportUnusable("for this test")


def test_an_export_has_one_moment_while_a_service_writes(
    cloud: ApiClient, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_meanwhile(_dialect: Dialect, connection: sa.Connection) -> None:
        # The first statement of the snapshot has run before the write.
        connection.execute(sa.text("SELECT count(*) FROM allocations"))
        claim(cloud, "meanwhile", "numa 1", "INSTANCE")

    monkeypatch.setattr(type(database.dialect), "keep_snapshot", write_meanwhile)
    file = tmp_path / "cloud.jsonl"
    assert export(database, file, "--json").json["tables"]["allocations"]["rows"] == 4
    assert import_(f"sqlite:///{tmp_path}/copy.sqlite", file).status == 0


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("target_url", ["mariadb"], indirect=True)
def test_mysql_holds_times_and_ratios_less_exactly_and_the_import_says_so(
    cloud: ApiClient, database: Database, tmp_path: Path, target_url: str
) -> None:
    file = tmp_path / "cloud.jsonl"
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE inventories SET allocation_ratio = 1.23456789")
    export(database, file)
    done = import_(target_url, file, "--json")
    assert done.status == 0, done.err
    rows = done.json["tables"]["inventories"]["rows"]
    assert done.json["rounded_ratios"] == {"inventories": rows}
    assert done.json["rounded_times"]["traits"] == done.json["tables"]["traits"]["rows"]


def test_the_header_and_the_trailer_are_as_documented(
    cloud: ApiClient, database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["format"] == "roost-export"
    assert lines[0]["version"] == 1
    assert lines[0]["schema"] == "a082b8bb98d0"
    assert lines[0]["tables"]["traits"]["columns"] == ["created_at", "updated_at", "id", "name"]
    assert [line["table"] for line in lines[1:-1] if "table" in line] == list(lines[0]["tables"])
    assert list(lines[-1]["end"]) == list(lines[0]["tables"])
    assert {name: table["rows"] for name, table in lines[-1]["end"].items()} == {
        name: table["rows"] for name, table in lines[0]["tables"].items()
    }


def test_a_placement_database_with_rows_is_refused_before_it_is_adopted(
    cloud: ApiClient, database: Database, database_url: str, opened: Opened, tmp_path: Path
) -> None:
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    target = opened(database_url)
    make_older(target, "b4ed3a175331")
    refused = import_(database_url, file)
    assert refused.status == 1
    assert "1 in resource_providers" in refused.err
    assert inspect_schema(target).roost_revision is None


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("target_url", ["mariadb"], indirect=True)
def test_rows_that_the_target_refuses_are_explained(
    *, cloud: ApiClient, database: Database, target_url: str, tmp_path: Path
) -> None:
    for name in ("rack", "RACK"):
        cloud.post("/resource_providers", {"name": name})
    file = tmp_path / "cloud.jsonl"
    export(database, file)
    refused = import_(target_url, file)
    said = " ".join(refused.err.split())
    assert refused.status == 1
    assert "Rows of resource_providers cannot be written" in said
    assert "compares names without regard to case" in said
    assert "Traceback" not in said
