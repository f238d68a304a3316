"""From settings to a running service: the start of `roost serve` and of any WSGI server."""

from __future__ import annotations

import gc
import itertools
import logging
import time
from collections.abc import Callable

from roost.api.application import Application
from roost.configuration.settings import Settings
from roost.store.connections.driver_errors import advice, explained, shown_url
from roost.store.connections.errors import DatabaseAway, DatabaseUnusable, OutcomeUnknown
from roost.store.database import Database
from roost.store.meta import ensure_identity, read_identity
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names

_LOG = logging.getLogger(__name__)


def open_database(settings: Settings) -> Database:
    """The database, with the schema and the standard names that this version needs.

    `DatabaseUnusable` says what is missing. Any number of processes may call this at the same time.
    """
    database = Database(settings.database)
    database.dialect.prepare_file(database)
    try:
        with explained(database.url):
            _patiently(settings, database, lambda: _prepare(settings, database))
    finally:
        # A server may fork after it has loaded the application. Its workers share no connections.
        database.close()
    return database


def create_application(settings: Settings) -> Application:
    """The WSGI application on its database, ready to answer."""
    database = open_database(settings)
    application = Application(settings, database)
    try:
        with explained(database.url):
            _patiently(settings, database, application.prepare)
    except BaseException:
        database.close()
        raise
    # The forest stays as long as the process, so the garbage collector need not look at it.
    gc.freeze()
    database.release()
    application.start_housekeeping()
    return application


def _prepare(settings: Settings, database: Database) -> None:
    prepare_schema(
        database,
        settings.upgrade_schema,
        max_retries=settings.connect_attempts,
        retry_interval=settings.connect_interval_seconds,
    )
    database.write(sync_standard_names)
    # The schema of an older version is current, and its database has no identity yet.
    if database.read(read_identity) is None:
        database.write_at_once(ensure_identity)


def _patiently(settings: Settings, database: Database, work: Callable[[], None]) -> None:
    """Do the work, again each time that the database goes away, up to `connect_attempts` times."""
    attempts, interval = settings.connect_attempts, settings.connect_interval_seconds
    for attempt in itertools.count(1):
        try:
            database.availability.require()
            work()
            return
        except DatabaseAway as error:
            if isinstance(error, OutcomeUnknown) and not error.lost:
                # The database is there, and fails: a disk is full or broken.
                raise DatabaseUnusable(
                    f"The database {shown_url(database.url)} failed while the service started: "
                    f"{error}. {advice(str(error), database.url)}"
                ) from error
            if attempt >= attempts >= 0:
                raise DatabaseUnusable(
                    f"The database {shown_url(database.url)} went away while the service started: "
                    f"{error}. Check that the server runs, and start the service again."
                ) from error
            _LOG.warning(
                "The database %s went away while the service started (attempt %d of %s), trying "
                "again in %s seconds: %s",
                shown_url(database.url),
                attempt,
                attempts if attempts >= 0 else "any number",
                interval,
                error,
            )
        time.sleep(interval)
