"""Compare the tables that Roost makes with those that openstack-placement makes.

Each service makes a database with its own command line. A test is one table on one kind of
database. In further tests, each tool runs on the database of the second tool and must change
no table of openstack-placement.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from databases import KINDS, Database, DatabaseError, Databases, open_databases

EPILOG = """\
examples, with PYTHON for the Python of the virtual environment made from requirements.txt:
  PYTHON conformance/schema.py --roost .venv/bin/roost
  PYTHON conformance/schema.py --database sqlite --database postgresql --database mariadb

The last line is 'N passed, M failed'. The exit status is 0 if tests ran and all passed, 1 if a
test failed or none ran, and 2 if the run could not be started.
"""

VERSION_TABLE = "alembic_version"
OWN_PREFIX = "roost_"

Table = Mapping[str, str]
"""The parts of a table: kind and name of a part -> its definition."""

Failures = list[str]
"""Why a test failed; none if it passed."""


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--roost",
        default=".venv/bin/roost",
        metavar="COMMAND",
        help="the command that 'db sync --db URL' is appended to (default: %(default)s)",
    )
    parser.add_argument(
        "--database",
        action="append",
        choices=KINDS,
        help="may be repeated; one run on each (default: sqlite)",
    )
    return parser.parse_args(arguments)


def run_reference(database: Database, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the reference's own tool on a database."""
    tool = Path(sys.executable).with_name("placement-manage")
    environment = os.environ | {"OS_PLACEMENT_DATABASE__CONNECTION": database.url}
    return subprocess.run(
        [str(tool), "db", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def run_roost(command: str, database: Database) -> subprocess.CompletedProcess[str]:
    """Let Roost make or upgrade the tables of a database."""
    return subprocess.run(
        [*shlex.split(command), "db", "sync", "--db", database.url],
        capture_output=True,
        text=True,
        check=False,
    )


def explain_exit(done: subprocess.CompletedProcess[str]) -> Failures:
    """Return the exit status and the last line of a program that failed."""
    if done.returncode == 0:
        return []
    words = (done.stderr or done.stdout).strip().splitlines()
    return [f"exit status {done.returncode}: {words[-1] if words else 'no output'}"]


def describe(database: Database) -> Mapping[str, Table]:
    """Reflect all tables of a database."""
    engine = sa.create_engine(database.url)
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        tables = {name: dict(_parts(inspector, name)) for name in inspector.get_table_names()}
        if VERSION_TABLE in tables:
            rows = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).all()
            tables[VERSION_TABLE]["rows"] = str(sorted(rows))
    engine.dispose()
    return tables


def _parts(inspector: sa.Inspector, table: str) -> Iterator[tuple[str, str]]:
    columns = inspector.get_columns(table)
    yield "columns", ", ".join(column["name"] for column in columns)
    for column in columns:
        definition: dict[str, Any] = {**column}
        definition["type"] = repr(column["type"])
        yield f"column {column['name']}", _plain(definition)
    yield "primary key", _plain(inspector.get_pk_constraint(table))
    yield "options", _plain(inspector.get_table_options(table))
    for kind, things in (
        ("unique constraint", inspector.get_unique_constraints(table)),
        ("index", inspector.get_indexes(table)),
        ("foreign key", inspector.get_foreign_keys(table)),
        ("check", inspector.get_check_constraints(table)),
    ):
        for thing in things:
            # A foreign key of SQLite may have no name: then its whole definition is the name.
            yield f"{kind} {thing['name'] or _plain(thing)}", _plain(thing)


def _plain(definition: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(definition.items()))


def compare(reference: Table | None, roost: Table | None) -> Failures:
    """Return the differences of two tables."""
    if reference is None or roost is None:
        return [f"only {'Roost' if reference is None else 'the reference'} has it"]
    return [
        f"{part}\n  reference: {reference.get(part, 'none')}\n"
        f"  roost:     {roost.get(part, 'none')}"
        for part in sorted(reference.keys() | roost.keys())
        if reference.get(part) != roost.get(part)
    ]


def compare_all(
    reference: Mapping[str, Table], roost: Mapping[str, Table]
) -> Iterator[tuple[str, Failures]]:
    """Compare table by table, without Roost's own tables."""
    for table in sorted(reference.keys() | roost.keys()):
        if not table.startswith(OWN_PREFIX):
            yield table, compare(reference.get(table), roost.get(table))


def run_tests(databases: Databases, roost_command: str) -> Iterator[tuple[str, Failures]]:
    """Run all tests on one kind of database: name and failures of each."""
    by_reference, by_roost = databases.create(), databases.create()
    made = {
        "placement-manage db sync": explain_exit(run_reference(by_reference, "sync")),
        "roost db sync": explain_exit(run_roost(roost_command, by_roost)),
    }
    yield from made.items()
    if any(made.values()):
        return
    reference, roost = describe(by_reference), describe(by_roost)
    yield from compare_all(reference, roost)

    version = run_reference(by_roost, "version")
    failures = explain_exit(version)
    revision = version.stdout.strip()
    if not failures and f"'{revision}'" not in roost[VERSION_TABLE]["rows"]:
        failures = [f"it prints {revision!r}"]
    yield "placement-manage db version on what Roost made", failures

    failures = explain_exit(run_reference(by_roost, "sync"))
    after = describe(by_roost)
    failures += [name for name in sorted(after) if compare(roost.get(name), after[name])]
    yield "placement-manage db sync on what Roost made", failures

    failures = explain_exit(run_roost(roost_command, by_reference))
    adopted = describe(by_reference)
    failures += [name for name, differences in compare_all(reference, adopted) if differences]
    failures += compare_own(adopted, roost)
    yield "roost db sync on what the reference made", failures


def compare_own(adopted: Mapping[str, Table], roost: Mapping[str, Table]) -> Failures:
    """Return those of Roost's own tables that differ in an adopted and in a new database."""
    own = sorted(name for name in adopted.keys() | roost.keys() if name.startswith(OWN_PREFIX))
    return [name for name in own if compare(adopted.get(name), roost.get(name))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and print the result."""
    options = parse_arguments(arguments)
    passed = failed = 0
    for kind in dict.fromkeys(options.database or ["sqlite"]):
        print(f"\n{kind}")
        try:
            with (
                tempfile.TemporaryDirectory(prefix="roost-schema-") as directory,
                open_databases(kind, Path(directory), keep=False) as databases,
            ):
                for name, failures in run_tests(databases, options.roost):
                    print(f"  {'FAILED' if failures else 'passed'} {name}", flush=True)
                    for failure in failures:
                        print("    " + failure.replace("\n", "\n    "))
                    passed += not failures
                    failed += bool(failures)
        except DatabaseError as error:
            print(f"schema.py: {kind}: {error}", file=sys.stderr)
            return 2
    print(f"\n{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
