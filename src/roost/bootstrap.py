"""From settings to a running service: what `roost serve` and any WSGI server start with."""

from __future__ import annotations

import gc

from roost.api.application import Application
from roost.configuration.settings import Settings
from roost.store.database import Database
from roost.store.files import make_room
from roost.store.schema import prepare_schema
from roost.store.vocabulary import sync_standard_names


def open_database(settings: Settings) -> Database:
    """The database, reachable, with the schema and the standard names that this version needs.

    `DatabaseUnusable` says what is missing otherwise. Any number of processes may do this at
    the same time.
    """
    database = Database(settings.database)
    make_room(database)
    prepare_schema(
        database,
        settings.upgrade_schema,
        max_retries=settings.connect_attempts,
        retry_interval=settings.connect_interval_seconds,
    )
    database.write(sync_standard_names)
    # Servers that load the application before they fork must not share connections.
    database.close()
    return database


def create_application(settings: Settings) -> Application:
    """The WSGI application on its database, ready to answer."""
    database = open_database(settings)
    application = Application(settings, database)
    application.prepare()
    # The forest stays as long as the process: there is nothing in it to be collected.
    gc.freeze()
    database.release()
    return application
