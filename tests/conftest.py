"""What all tests share: databases of every kind that this machine has, and the API on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from databases import KINDS, DatabaseError, Databases, open_databases
from roost.store.database import Database, DatabaseOptions
from roost.store.schema import prepare_schema
from roost.store.vocabulary import sync_standard_names
from support.clean import clean_tables
from support.client import ApiClient, in_process_client

# Kinds of database that must be there: a run that passes without them has not shown enough.
REQUIRED = tuple(filter(None, os.environ.get("ROOST_TEST_REQUIRE", "").split(",")))

_missing: dict[str, str] = {}


@pytest.fixture(scope="session")
def _stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def _makers(_stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Databases]:
    """The kinds of database that this machine has; asked once."""
    makers = {}
    for kind in KINDS:
        try:
            makers[kind] = _stack.enter_context(
                open_databases(kind, tmp_path_factory.mktemp(kind), keep=False)
            )
        except DatabaseError as error:
            if kind in REQUIRED:
                pytest.exit(f"{kind} is required: {error}", returncode=2)
            _missing[kind] = str(error)
    return makers


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, _makers: dict[str, Databases]) -> str:
    """Each kind of database in turn."""
    name: str = request.param
    if name not in _makers:
        # Named again at the end of the run; where it must not happen, `REQUIRED` ends the run.
        pytest.skip(f"no {name} here: {_missing[name]}")
    return name


@pytest.fixture
def database_url(kind: str, _makers: dict[str, Databases]) -> Iterator[str]:
    """A new, empty database."""
    maker = _makers[kind]
    made = maker.create()
    yield made.url
    maker.drop(made)


@pytest.fixture(scope="session")
def _prepared(_makers: dict[str, Databases]) -> Iterator[dict[str, Database]]:
    """One database of each kind with schema and standard names, for all tests in turn."""
    prepared: dict[str, Database] = {}
    yield prepared
    for database in prepared.values():
        database.close()


@pytest.fixture
def database(kind: str, _makers: dict[str, Databases], _prepared: dict[str, Database]) -> Database:
    """A database without providers, consumers or custom names."""
    if kind not in _prepared:
        # What the tests write need not survive a loss of power.
        options = DatabaseOptions(url=_makers[kind].create().url, sqlite_synchronous=False)
        _prepared[kind] = Database(options)
        prepare_schema(_prepared[kind], upgrade=True)
    _prepared[kind].write(clean_tables)
    _prepared[kind].write(sync_standard_names)
    return _prepared[kind]


@pytest.fixture
def api(database: Database, tmp_path: Path) -> ApiClient:
    """The API in this process, as an administrator with the latest version sees it."""
    return in_process_client(database, tmp_path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was not run."""
    found = [kind for kind in KINDS if kind not in _missing]
    terminalreporter.write_line(f"databases tested: {', '.join(found)}")
    for name, reason in _missing.items():
        terminalreporter.write_line(f"NOT RUN on {name}: {reason}", yellow=True)
