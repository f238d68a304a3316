"""Whether the database answers. While it is silent, one thread at a time probes it for all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event

from roost.store.connections.errors import DatabaseAway, DatabaseSilent
from roost.store.connections.watchdog import end_silent

# A server refuses a connection at once. The timeouts of drivers are longer than this.
REFUSAL_SECONDS = 0.9
# How long a thread waits for the probe of another thread, which usually takes milliseconds.
_PROBE_SECONDS = 0.25


class Availability:
    """Keeps threads from a database that is known to be silent.

    Otherwise each thread would wait until its statement times out, or until a waiting thread frees
    its connection. Soon no thread would be left for requests that need no database.
    """

    def __init__(self, probe: Callable[[], None], wait_seconds: float) -> None:
        self._probe = probe
        self._wait_seconds = wait_seconds
        self._probing = threading.Lock()
        self._is_silent = False

    def note_silence(self) -> None:
        """Record that the database did not answer in time."""
        self._is_silent = True

    def require(self) -> None:
        """Return if the database is not known to be silent; otherwise probe it, or raise."""
        if not self._is_silent:
            return
        if not self._probing.acquire(timeout=_PROBE_SECONDS):
            raise self._silent()
        try:
            if self._is_silent:
                self._find_out()
        finally:
            self._probing.release()

    def guard(self, engine: Engine) -> None:
        """Refuse new connections of the engine while the database is silent."""

        # The first listener: after one that opens the connection, SQLAlchemy asks no further one.
        @event.listens_for(engine, "do_connect", insert=True)
        def refuse(*_arguments: Any) -> None:
            if self._is_silent:
                raise self._silent()

    def _find_out(self) -> None:
        began = time.monotonic()
        try:
            self._probe()
        except DatabaseAway:
            # A refusal is an answer as well.
            self._is_silent = time.monotonic() - began > REFUSAL_SECONDS
            if self._is_silent:
                # The whole database is silent, not just one connection: end all waits.
                end_silent(self._wait_seconds)
            raise
        self._is_silent = False

    def _silent(self) -> DatabaseSilent:
        return DatabaseSilent("the database does not answer")
