"""Whether a process can answer requests now: its database, the schema, the forest."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from roost.configuration.limit_log import LIMIT_LOG
from roost.replica.replica import ForestLate, Replica
from roost.store.connections.driver_errors import reason
from roost.store.database import Database
from roost.store.migrations.schema import read_status

# Any client may ask, so all clients of this time share one answer.
_KEPT_SECONDS = 1.0
# Longer than all checks may take: a new connection, its statements, and a look into the journal.
_WAIT_SECONDS = 15.0
# How long a forest may be brought up to date before the process is not ready.
_FOREST_SECONDS = 5.0
# How often a client that waits for the checks of another looks at the forest.
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be as it should."""

    name: str
    ok: bool
    text: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """All checks, up to the first that failed."""

    checks: tuple[Check, ...]

    @property
    def is_ready(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)


# What any client may know about a check that raises an error.
_FAILURES = {
    "database": "The database does not answer; the log says why.",
    "forest": "The forest cannot be brought up to date; the log says why.",
}
_SERVING = Check("serving", True, "The server takes requests.")
_STOPPING = Readiness((Check("serving", False, "The server stops. Send requests to another one."),))
_BUSY = Readiness(
    (Check("database", False, f"Checks have been under way for {_WAIT_SECONDS:.0f} seconds."),)
)


class ReadinessCheck:
    """Check a database and the forest from it. For any number of threads."""

    def __init__(self, database: Database, replica: Replica) -> None:
        self._database = database
        self._replica = replica
        self._checking = threading.Lock()
        self._last: tuple[float, Readiness] | None = None

    def look(self, *, stops: bool = False) -> Readiness:
        """The state of a second ago or later."""
        if stops:
            return _STOPPING
        asked = time.monotonic()
        while not self._checking.acquire(timeout=_PAUSE_SECONDS):
            if self._replica.look_seconds > _FOREST_SECONDS:
                # The thread that checks may itself be the one that reads all providers.
                return Readiness((_SERVING, self._late()))
            if time.monotonic() - asked > _WAIT_SECONDS:
                return _BUSY
        try:
            # A check that another thread made meanwhile is as good as an own one.
            if self._last is None or self._last[0] < asked - _KEPT_SECONDS:
                readiness = self._check()
                self._last = time.monotonic(), readiness
            return self._last[1]
        finally:
            self._checking.release()

    def _check(self) -> Readiness:
        checks = [_SERVING]
        for name, work in (("database", self._schema), ("forest", self._forest)):
            began = time.monotonic()
            try:
                found = work()
            except Exception as error:
                found = [Check(name, False, _FAILURES[name])]
                # The reason names the address and the user of the database.
                why = reason(error, self._database.url)
                LIMIT_LOG.warn(f"readiness of {name}", f"/readyz: {_FAILURES[name]} {why}")
            seconds = time.monotonic() - began
            checks += [Check(one.name, one.ok, one.text, seconds) for one in found]
            if not all(one.ok for one in found):
                break
        return Readiness(tuple(checks))

    def _schema(self) -> list[Check]:
        status = self._database.probe(read_status)
        answers = Check("database", True, "The database answers.")
        revisions = f"{status.placement_revision} and {status.roost_revision}"
        if status.can_serve:
            text = f"This version serves on the schema, at the revisions {revisions}."
        else:
            text = f"The schema is {status.state.value}, at the revisions {revisions}. "
            text += "Run `roost db check`."
        return [answers, Check("schema", status.can_serve, text)]

    def _forest(self) -> list[Check]:
        try:
            forest = self._replica.current(_FOREST_SECONDS - self._replica.look_seconds)
        except ForestLate:
            return [self._late()]
        text = f"The forest is up to date and has {forest.provider_count} providers."
        return [Check("forest", True, text)]

    def _late(self) -> Check:
        seconds = self._replica.look_seconds
        text = f"The forest is being brought up to date, for {seconds:.0f} seconds so far."
        return Check("forest", False, text)
