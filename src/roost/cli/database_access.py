"""The database that a command of the operator opens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from roost.configuration.settings import Settings
from roost.store.connections.driver_errors import explained
from roost.store.database import Database
from roost.store.migrations.schema import connect_or_explain

_SILENCE_SECONDS = 3600


@contextmanager
def open_database(
    settings: Settings, *, may_make: bool = False, only_reads: bool = False
) -> Iterator[Database]:
    """The database of these settings. With `may_make`, a missing SQLite file is made.

    A command that `only_reads` leaves the mode of an SQLite file as it is.
    """
    # A check of a large database may take a while.
    patient = replace(
        settings.database, silence_seconds=_SILENCE_SECONDS, keeps_file_mode=only_reads
    )
    with closing(Database(patient)) as database:
        dialect = database.dialect
        (dialect.prepare_file if may_make else dialect.require_file)(database)
        connect_or_explain(database)
        with explained(database.url):
            yield database
