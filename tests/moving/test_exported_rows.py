"""Rows that no route writes: no import accepts them, and `roost db check` finds them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from roost.moving.export_format import new_digests, parts_of, trailer_line
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Finding, Level
from roost.store.database import Database
from support.api_client import ApiClient
from support.moving.sample_cloud import make_sample_cloud
from support.roost_command import roost
from support.worlds.notation import provider_uuid

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

# The table, the column, the wrong value, and what the sentence says.
UNTYPED = [
    ("resource_providers", "id", "one", "'one', and needs a whole number"),
    ("resource_providers", "id", 2**63, "9223372036854775808, and needs a whole number"),
    ("resource_providers", "generation", True, "True, and needs a whole number"),
    ("resource_providers", "created_at", 5, "5, and needs a time"),
    ("resource_providers", "uuid", None, "None, and needs a uuid"),
    ("inventories", "total", {}, "{}, and needs a whole number"),
]
ABSENT = 999_999
CONSUMER = provider_uuid("consumer 0")
HOSTILE = [
    ("resource_providers", "generation", None, "None, and needs a whole number"),
    ("resource_providers", "generation", -1, "-1, and needs a whole number from 0"),
    ("resource_providers", "created_at", "2026-13-01T00:00:00", "needs a time"),
    ("resource_providers", "created_at", "2026-11-17T00:00:00+02:00", "without a zone"),
    ("resource_providers", "created_at", "2026-11-17T00:00:00Z", "without a zone"),
    ("resource_providers", "uuid", "no uuid", "needs a uuid"),
    ("resource_providers", "name", None, "None, and needs a text"),
    ("resource_providers", "name", "n" * 201, "at most 200 characters"),
    ("resource_providers", "name", "a\0b", "without NUL"),
    ("resource_providers", "parent_provider_id", ABSENT, "and no provider has this id"),
    ("resource_providers", "root_provider_id", ABSENT, "and no provider has this id"),
    ("resource_providers", "root_provider_id", 2, "2, and the root of its tree is 1"),
    ("resource_providers", "root_provider_id", None, "None, and the root of its tree is 1"),
    ("inventories", "total", "abc", "'abc', and needs a whole number"),
    ("inventories", "total", -1, "-1, and needs a whole number from 1"),
    ("inventories", "total", 0, "0, and needs a whole number from 1"),
    ("inventories", "min_unit", 0, "0, and needs a whole number from 1"),
    ("inventories", "max_unit", 0, "0, and needs a whole number from 1"),
    ("inventories", "step_size", 0, "0, and needs a whole number from 1"),
    ("inventories", "reserved", 2**31 - 1, "total and allocation_ratio make the capacity -"),
    ("inventories", "allocation_ratio", 1e300, "1e+300, and needs a number"),
    ("inventories", "resource_provider_id", ABSENT, "no row of resource_providers"),
    ("inventories", "resource_class_id", ABSENT, "no row of resource_classes has this value"),
    ("allocations", "used", 0, "0, and needs a whole number from 1"),
    ("allocations", "resource_provider_id", ABSENT, "no row of resource_providers"),
    ("allocations", "resource_class_id", ABSENT, "no row of resource_classes has this value"),
    ("allocations", "consumer_id", "nobody", "'nobody', and no row of consumers has this value"),
    ("resource_provider_traits", "trait_id", ABSENT, "no row of traits has this value"),
    ("resource_provider_traits", "resource_provider_id", ABSENT, "no row of resource_providers"),
    ("resource_provider_aggregates", "aggregate_id", ABSENT, "no row of placement_aggregates"),
    ("resource_provider_aggregates", "resource_provider_id", ABSENT, "no row of resource_prov"),
    ("consumers", "uuid", "nobody", "'nobody', and needs a uuid"),
    ("consumers", "project_id", ABSENT, "no row of projects has this value"),
    ("consumers", "user_id", ABSENT, "no row of users has this value"),
    ("consumers", "consumer_type_id", ABSENT, "no row of consumer_types has this value"),
    ("placement_aggregates", "uuid", None, "None, and needs a uuid"),
    ("projects", "external_id", "", "'', and needs a text of 1 to 255"),
    ("users", "external_id", "", "'', and needs a text of 1 to 255"),
    ("traits", "name", "CUSTOM_a", "'CUSTOM_a', and needs a name"),
    ("resource_classes", "name", "", "'', and needs a name"),
    ("resource_classes", "id", 9_999, "9999, and VCPU has the id 9999 instead of 0"),
    ("consumer_types", "name", "A B", "'A B', and needs a name"),
]


@pytest.fixture
def good(database: Database, api: ApiClient, tmp_path: Path) -> Path:
    """An export of the sample cloud."""
    make_sample_cloud(api)
    file = tmp_path / "good.jsonl"
    assert roost("db", "export", str(file), "--db", database.options.url).status == 0
    return file


def set_values(file: Path, table: str, changes: dict[int, dict[str, Any]]) -> int:
    """Change rows of a table, with the right trailer; return the line of the first row."""
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    columns = lines[0]["tables"][table]["columns"]
    begin = lines.index({"table": table}) + 1
    for row, values in changes.items():
        for column, value in values.items():
            lines[begin + row][columns.index(column)] = value
    digests, digest = new_digests(parts_of(lines[0]["tables"])), None
    for line in lines[1:-1]:
        if isinstance(line, dict):
            digest = digests[line["table"]]
        else:
            assert digest is not None
            digest.add(hostile_line(line))
    trailer = json.loads(trailer_line(digests))
    file.write_bytes(b"".join(map(hostile_line, [*lines[:-1], trailer])))
    return begin + 1


def hostile_line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def refusal(good: Path, table: str, changes: dict[int, dict[str, Any]]) -> tuple[int, str]:
    """The line of the first row of the table, and what an import says of the changed export."""
    bad, target = good.with_name("bad.jsonl"), good.with_name("target.sqlite")
    shutil.copyfile(good, bad)
    line = set_values(bad, table, changes)
    outcome = roost("db", "import", str(bad), "--db", f"sqlite:///{target}")
    assert (outcome.status, target.exists()) == (1, False), changes
    assert "Traceback" not in outcome.err
    return line, " ".join(outcome.err.split())


def test_a_row_that_no_route_writes_is_named_before_anything_is_written(good: Path) -> None:
    for table, column, value, sentence in (*UNTYPED, *HOSTILE):
        line, said = refusal(good, table, {0: {column: value}})
        assert f"line {line}: the column {column} of {table} is " in said
        assert sentence in said, said
    set_values(good, "inventories", {})
    assert roost("db", "import", str(good), "--db", f"sqlite:///{good}.sqlite").status == 0


def test_ownership_that_no_declaration_writes_is_named_before_anything_is_written(
    database: Database, api: ApiClient, tmp_path: Path
) -> None:
    tree = {"providers": [{"name": "h", "traits": ["CUSTOM_A"]}]}
    assert api.put("/roost/trees/h?owner=me", tree).status == 200
    file = tmp_path / "owned.jsonl"
    assert roost("db", "export", str(file), "--db", database.options.url).status == 0
    for column, value, sentence in (
        ("owner", "Me", "and needs the name of an owner"),
        ("content", "{", "and needs parts of a provider"),
        ("content", '{"created": 1}', "and needs parts of a provider"),
        ("provider_uuid", "x", "and needs a uuid"),
    ):
        line, said = refusal(file, "roost_ownership", {0: {column: value}})
        assert f"line {line}: the column {column} of roost_ownership is " in said
        assert sentence in said, said


def test_a_row_that_would_not_be_read_back_as_it_is_written_is_named_before(good: Path) -> None:
    line, said = refusal(good, "inventories", {0: {"allocation_ratio": 1}})
    assert f"line {line}: the column allocation_ratio of inventories is 1" in said
    for table, column, value in (
        ("traits", "id", 9_999),
        ("resource_provider_traits", "resource_provider_id", 8),
    ):
        line, said = refusal(good, table, {0: {column: value}})
        assert f"line {line + 1}: the column {column}" in said
        assert f"the row before has the higher value {value}" in said.replace("(", "")
    spelt = good.with_name("spelt.jsonl")
    spelt.write_bytes(good.read_bytes().replace(b",null,0,", b", null,0,", 1))
    outcome = roost("db", "import", str(spelt), "--db", f"sqlite:///{spelt}.sqlite")
    assert outcome.status == 1
    assert "the row is not written as an export writes it" in " ".join(outcome.err.split())


def test_the_check_of_a_database_accepts_each_time_that_an_import_accepts(
    good: Path, database: Database
) -> None:
    last = "9999-12-31T23:59:59.999999"
    set_values(good, "consumers", {0: {"created_at": last}})
    target = f"sqlite:///{good}.sqlite"
    assert roost("db", "import", str(good), "--db", target).status == 0
    checked = roost("db", "check", "--db", target)
    assert checked.status != 2, checked.out


def test_what_two_rows_make_wrong_is_named_before_anything_is_written(good: Path) -> None:
    line, said = refusal(
        good,
        "resource_providers",
        {0: {"parent_provider_id": 2}, 1: {"parent_provider_id": 1}},
    )
    assert f"line {line}: the column parent_provider_id of resource_providers is 2" in said
    assert "its own ancestor" in said
    for table, column, value in (
        ("resource_providers", "id", 1),
        ("resource_providers", "name", "same"),
        ("traits", "name", "SAME"),
        ("inventories", "resource_provider_id, resource_class_id", (1, 1)),
        ("allocations", "resource_provider_id, resource_class_id, consumer_id", (2, 0, CONSUMER)),
    ):
        given = value if isinstance(value, tuple) else (value,)
        values = dict(zip(column.split(", "), given, strict=True))
        line, said = refusal(good, table, {0: values, 1: values})
        assert f"line {line + 1}: the column {column} of {table} is " in said
        assert "an earlier row has the same value" in said
    line, said = refusal(good, "allocations", {0: {"resource_class_id": 2}})
    assert "(2, 2), and no row of inventories has this value" in said


@pytest.mark.slow
def test_the_check_of_a_database_finds_each_row_that_no_import_accepts(
    good: Path, database: Database
) -> None:
    assert not database.read(failures)
    for table, column, value, _ in HOSTILE:
        held = str(value).replace("T", " ") if column == "created_at" else value
        with database.engine.connect() as connection:
            connection.exec_driver_sql(
                f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT min(rowid) FROM {table})",
                (held,),
            )
            assert failures(connection), (table, column, value)
            connection.rollback()


def failures(connection: Connection) -> list[Finding]:
    return [one for one in check_database(connection) if one.level is Level.FAILURE]
