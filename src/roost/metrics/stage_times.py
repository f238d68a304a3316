"""The time that a request spends in each stage."""

from __future__ import annotations

import threading
from enum import IntEnum
from time import perf_counter


class Stage(IntEnum):
    """What a request waits for, or what the service does for it."""

    AUTHENTICATION = 0
    FRESHNESS = 1
    """The look into the journal, and the refresh of the forest."""
    TURN = 2
    """A large search waits for other large searches."""
    SEARCH = 3
    RENDER = 4
    DATABASE = 5


STAGE_NAMES = tuple(stage.name.lower() for stage in Stage)
_ZEROS = [0.0] * len(Stage)


class StageTimes:
    """The seconds of one request in each stage."""

    __slots__ = ("seconds", "spans")

    def __init__(self) -> None:
        self.seconds = _ZEROS.copy()
        # Each stage with its begin and end, if the request is traced.
        self.spans: list[tuple[Stage, float, float]] | None = None

    def end(self, stage: Stage, began: float) -> None:
        """Add the time since the beginning of the stage, as `perf_counter` gave it."""
        now = perf_counter()
        self.seconds[stage] += now - began
        if self.spans is not None:
            self.spans.append((stage, began, now))

    def move(self, seconds: float, source: Stage, target: Stage) -> None:
        """Count a part of one stage as another stage."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds

    def by_name(self) -> dict[str, float]:
        """The seconds of the stages that the request passed, to the microsecond."""
        return {
            name: round(seconds, 6)
            for name, seconds in zip(STAGE_NAMES, self.seconds, strict=True)
            if seconds > 0
        }


class _CurrentRequest(threading.local):
    """The stages of the request that a thread answers."""

    # A thread that answers no request has no use for its times.
    times = StageTimes()


CURRENT = _CurrentRequest()
