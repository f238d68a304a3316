"""Whether the database answers. While it does not, one thread at a time finds out, for all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event

from roost.store.errors import DatabaseAway, DatabaseSilent
from roost.store.watchdog import end_silent

# A server that refuses a connection does so at once; the time-outs of drivers are longer.
REFUSAL_SECONDS = 0.9
# For so long a thread waits for another one's probe, which usually takes a few milliseconds.
_PROBE_SECONDS = 0.25


class Availability:
    """Keeps threads from a database that is known to be silent.

    Each of them would wait for as long as a statement may take, or for a connection that such a
    thread has. Soon all threads of a process would wait, also those for what needs no database.
    """

    def __init__(self, probe: Callable[[], None], wait_seconds: float) -> None:
        self._probe = probe
        self._wait_seconds = wait_seconds
        self._probing = threading.Lock()
        self._is_silent = False

    def doubt(self) -> None:
        """Note that the database did not answer in time."""
        self._is_silent = True

    def require(self) -> None:
        """Pass if the database answers as far as is known; otherwise probe it, or fail."""
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
        """Let the engine open no connections while the database is silent."""

        @event.listens_for(engine, "do_connect")
        def refuse(*_arguments: Any) -> None:
            if self._is_silent:
                raise self._silent()

    def _find_out(self) -> None:
        began = time.monotonic()
        try:
            self._probe()
        except DatabaseAway:
            # A refusal is an answer, too.
            self._is_silent = time.monotonic() - began > REFUSAL_SECONDS
            if self._is_silent:
                # The database is silent, and not a single connection: others wait in vain.
                end_silent(self._wait_seconds)
            raise
        self._is_silent = False

    def _silent(self) -> DatabaseSilent:
        return DatabaseSilent("the database does not answer")
