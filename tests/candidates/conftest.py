"""Fixtures of the tests of allocation candidates: worlds for many requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from databases import Databases
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names
from support.api_client import in_process_client
from support.documented_answers import checked_client
from support.store.table_cleaning import clean_tables
from support.worlds.world import Configured, World, Worlds, build_world


@pytest.fixture(scope="session")
def _tables_database(_makers: dict[str, Databases]) -> Iterator[Database]:
    """A database that no other test touches."""
    options = DatabaseOptions(url=_makers["sqlite"].create().url, sqlite_synchronous=False)
    database = Database(options)
    prepare_schema(database, upgrade=True)
    database.write(sync_standard_names)
    yield database
    database.close()


@pytest.fixture(scope="session")
def worlds(_tables_database: Database, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The world of a text, alone in its database. The last world is kept."""
    latest: list[World] = []

    def world_of(text: str) -> World:
        if not latest or latest[0].text != text:
            latest.clear()
            _tables_database.write_at_once(clean_tables)
            client = in_process_client(_tables_database, tmp_path_factory.mktemp("world"))
            api = checked_client(client)
            latest.append(build_world(api, text))
        return latest[0]

    return world_of


@pytest.fixture
def configured(database: Database, tmp_path: Path) -> Configured:
    """The world of a text, and a service with these lines in its configuration."""

    def build(text: str, *lines: str) -> World:
        configuration = "\n".join(
            (
                *("[api]", "auth_strategy = noauth2"),
                *("[oslo_policy]", "enforce_new_defaults = false"),
                *lines,
            )
        )
        client = in_process_client(database, tmp_path, configuration)
        return build_world(checked_client(client), text)

    return build
