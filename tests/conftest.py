"""What all tests share: databases of every kind that this machine has, and the API on them."""

from __future__ import annotations

import gc
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from databases import KINDS, DatabaseError, Databases, open_databases
from roost.api.application import Application
from roost.api.policy.policy import Policy
from roost.configuration.settings import Settings
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names
from support.api_client import ApiClient, application_client, settings_for
from support.documented_answers import checked_client
from support.properties import register_profiles
from support.requirements import note_missing, run
from support.short_paths import short_directory as made_short_directory
from support.store.setup_cache import Made, SetupCache
from support.store.table_cleaning import clean_tables

register_profiles()
# All objects of a collection stay, so a search for garbage among them is in vain.
gc.disable()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts programs in the background so. Commands under test would inherit it, and
    # ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Files and sockets of a process. Some systems allow few, unless a process asks for more.
OPEN_FILES = 10_000
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


@pytest.fixture(scope="session")
def _stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """A directory whose path is short enough for unix sockets."""
    with made_short_directory() as directory:
        yield directory


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
        pytest.skip(f"no {name} here: {run.missing[name]}")
    run.databases.add(name)
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
    _prepared[kind].write_at_once(clean_tables)
    return _prepared[kind]


@pytest.fixture(scope="session")
def _usual_applications(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Database], Application]:
    """Makes applications with the usual settings.

    Settings and policy are read once: to read them takes longer than most tests.
    """
    known: dict[str, tuple[Settings, Policy]] = {}

    def make(database: Database) -> Application:
        url = database.options.url
        if url not in known:
            settings = settings_for(database, tmp_path_factory.mktemp("settings"))
            known[url] = settings, Policy(settings.oslo)
        settings, policy = known[url]
        return Application(settings, database, policy)

    return make


@pytest.fixture
def api(database: Database, _usual_applications: Callable[[Database], Application]) -> ApiClient:
    """The API in this process, as an administrator with the latest version sees it.

    All its answers must be in the OpenAPI document. Their shape does not depend on the
    database, so SQLite shows it.
    """
    client = application_client(_usual_applications(database))
    return checked_client(client) if database.engine.dialect.name == "sqlite" else client


@pytest.fixture(scope="session")
def _made() -> Made:
    return {}


@pytest.fixture
def setup_cache(database: Database, _made: Made) -> SetupCache:
    """Makes what several tests begin with."""
    return SetupCache(database, _made)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from visiting all modules and tests again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker process sends the databases and the reference that it had to the main process."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["run"] = run.as_output()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The main process adds what a worker had. A worker that crashed sends nothing."""
    if hasattr(node, "workeroutput"):
        run.add(node.workeroutput["run"])
        run.end_if_incomplete()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was run, and what was not."""
    tested = [kind for kind in KINDS if kind in run.databases]
    terminalreporter.write_line(f"databases tested: {', '.join(tested) or 'none'}")
    for name, reason in run.missing.items():
        terminalreporter.write_line(f"NOT RUN on {name}: {reason}", yellow=True)
