"""What threads read from an SQLite database, and whether they do it in a turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from sqlalchemy import event

from roost.store.connections.sessions import ConnectionSource, Session
from roost.store.database import Database
from roost.turns import Turn, Turns


@dataclass
class ReadWatch:
    """The statements of all requests, and the connections that each thread holds."""

    # The statements of threads whose search does not work in line, and of those whose search does.
    outside: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    # How often a thread with a connection of the shared ones waited or paused.
    held_in_turn: int = 0
    paused: int = 0
    local: threading.local = field(default_factory=threading.local)

    def note_statement(self, text: str) -> None:
        works = getattr(self.local, "works", False)
        (self.inside if works else self.outside).append(text)

    def note_pause(self) -> None:
        self.paused += 1
        self.held_in_turn += getattr(self.local, "held", 0) > 0


@contextmanager
def watched_reads(database: Database) -> Iterator[ReadWatch]:
    """Watch the reads of a database of SQLite; looks into the journal do not count."""
    watch = ReadWatch()

    def trace(connection: Any, _record: Any) -> None:
        connection.set_trace_callback(watch.note_statement)

    engines = (database.reader, database.surveyor, database.engine)
    # Connections that are open have no trace.
    database.close()
    for engine in engines:
        event.listen(engine, "connect", trace)
    shared = (database.readers, database.writers)
    try:
        with _watched_sessions(watch, shared), _watched_turns(watch):
            yield watch
    finally:
        for engine in engines:
            event.remove(engine, "connect", trace)
        database.close()


@contextmanager
def _watched_sessions(watch: ReadWatch, shared: tuple[ConnectionSource, ...]) -> Iterator[None]:
    enter, leave = Session.__enter__, Session.__exit__

    def noting_enter(session: Session) -> Any:
        connection = enter(session)
        watch.local.held = getattr(watch.local, "held", 0) + (session._source in shared)
        return connection

    def noting_leave(session: Session, *error: Any) -> None:
        watch.local.held -= session._source in shared
        leave(session, *error)

    with (
        patch.object(Session, "__enter__", noting_enter),
        patch.object(Session, "__exit__", noting_leave),
    ):
        yield


@contextmanager
def _watched_turns(watch: ReadWatch) -> Iterator[None]:
    begin, end, pause, wait = Turns.begin_work, Turns.end_work, Turn.pause, Turn._wait_for

    def noting_begin(turns: Turns) -> None:
        watch.local.works = True
        begin(turns)

    def noting_end(turns: Turns) -> None:
        watch.local.works = False
        end(turns)

    def noting_pause(turn: Turn) -> None:
        watch.note_pause()
        pause(turn)

    def noting_wait(turn: Turn, how: Any) -> None:
        watch.note_pause()
        wait(turn, how)

    with (
        patch.object(Turns, "begin_work", noting_begin),
        patch.object(Turns, "end_work", noting_end),
        patch.object(Turn, "pause", noting_pause),
        patch.object(Turn, "_wait_for", noting_wait),
    ):
        yield
