"""What the tests of moving share: the reference on databases of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from databases import Databases
from roost.api.application import Application
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import sync_schema
from support.api_client import application_client, settings_for
from support.moving.shared_database import MakeApi, SharedDatabase
from support.requirements import reference_environment
from support.servers.live_server import ReferenceServer


@pytest.fixture(scope="session")
def _shared() -> Iterator[tuple[ExitStack, dict[str, SharedDatabase]]]:
    with ExitStack() as stack:
        yield stack, {}


@pytest.fixture
def shared_database(
    kind: str,
    _makers: dict[str, Databases],
    _shared: tuple[ExitStack, dict[str, SharedDatabase]],
    tmp_path_factory: pytest.TempPathFactory,
) -> SharedDatabase:
    """One database of each kind, which tests use in turn."""
    stack, made = _shared
    if kind not in made:
        url = _makers[kind].create().url
        directory = tmp_path_factory.mktemp(f"reference-{kind}")
        reference = stack.enter_context(ReferenceServer(reference_environment(), directory, url))
        roost = stack.enter_context(
            closing(Database(DatabaseOptions(url=url, sqlite_synchronous=False)))
        )
        sync_schema(roost)
        made[kind] = SharedDatabase(url, reference, roost)
    return made[kind]


@pytest.fixture
def make_api(tmp_path: Path) -> MakeApi:
    """Makes a client of a new application on a database."""
    return lambda database: application_client(
        Application(settings_for(database, tmp_path), database)
    )
