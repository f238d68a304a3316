"""What all tests share: databases of every kind that this machine has, and the API on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from databases import KINDS, DatabaseError, Databases, open_databases
from roost.api.application import Application
from roost.configuration.settings import Settings
from roost.store.database import Database, DatabaseOptions
from roost.store.schema import prepare_schema
from roost.store.vocabulary import sync_standard_names
from support.clean import clean_tables
from support.client import ApiClient, application_client, settings_for
from support.making import Made, Making
from support.requirements import missing, note_missing


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
                # What the tests write need not survive a loss of power.
                open_databases(kind, tmp_path_factory.mktemp(kind), keep=False, durable=False)
            )
        except DatabaseError as error:
            note_missing(kind, str(error))
    return makers


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, _makers: dict[str, Databases]) -> str:
    """Each kind of database in turn."""
    name: str = request.param
    if name not in _makers:
        # Named again at the end of the run; where it must not happen, the run has ended.
        pytest.skip(f"no {name} here: {missing[name]}")
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
        options = DatabaseOptions(url=_makers[kind].create().url, sqlite_synchronous=False)
        _prepared[kind] = Database(options)
        prepare_schema(_prepared[kind], upgrade=True)
        _prepared[kind].write(sync_standard_names)
    _prepared[kind].write(clean_tables)
    return _prepared[kind]


@pytest.fixture(scope="session")
def _usual_settings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Database], Settings]:
    """The settings for a database; read once, because reading them takes longer than most tests."""
    known: dict[str, Settings] = {}

    def settings(database: Database) -> Settings:
        url = database.options.url
        if url not in known:
            known[url] = settings_for(database, tmp_path_factory.mktemp("settings"))
        return known[url]

    return settings


@pytest.fixture
def api(database: Database, _usual_settings: Callable[[Database], Settings]) -> ApiClient:
    """The API in this process, as an administrator with the latest version sees it."""
    return application_client(Application(_usual_settings(database), database))


@pytest.fixture(scope="session")
def _made() -> Made:
    return {}


@pytest.fixture
def making(database: Database, _made: Made) -> Making:
    """Makes what several tests begin with."""
    return Making(database, _made)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was not run."""
    found = [kind for kind in KINDS if kind not in missing]
    terminalreporter.write_line(f"databases tested: {', '.join(found)}")
    for name, reason in missing.items():
        terminalreporter.write_line(f"NOT RUN on {name}: {reason}", yellow=True)
