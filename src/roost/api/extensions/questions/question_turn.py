"""The turn of a question under `/roost/`: all large work for its answer happens in it.

A question reads from the database in small pages. While it waits in line, and while it works on
what it has read, it holds none of the connections that all requests share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import perf_counter

from roost.api.http.requests import Request
from roost.api.services import Services
from roost.metrics.stage_times import Stage, StageTimes
from roost.search.forest.forest import Forest
from roost.service.questions.provider_list import names_of_providers
from roost.turns import TURNS, Turn

# A question looks at each provider. For more of them than these it takes milliseconds.
_FEW_PROVIDERS = 5000
# The names that a question looks up without waiting in line, and at once.
_FEW_NAMES = 100
_NAMES_AT_ONCE = 512


@contextmanager
def question_turn(services: Services, request: Request) -> Iterator[Turn]:
    """The turn of a request, within the limits of the operator. The request gets its times."""
    limits, times = services.settings.limits, request.times
    began, counted = perf_counter(), _counted(times)
    with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
        try:
            yield turn
        finally:
            times.end(Stage.SEARCH, began)
            times.move(turn.waited_seconds, Stage.SEARCH, Stage.TURN)
            # Reads within the turn count as such.
            times.seconds[Stage.SEARCH] -= _counted(times) - counted


def enter_if_large(turn: Turn, forest: Forest) -> None:
    """Wait in line before a question about a large forest.

    If many such questions came at once and began at once, small requests would wait for them all.
    """
    if forest.provider_count > _FEW_PROVIDERS:
        turn.enter()


def forest_aside(services: Services, turn: Turn) -> Forest:
    """A forest for a question that may be in line already.

    While all providers are read, the wait for it takes long. Other searches work meanwhile.
    """
    with turn.aside():
        return services.forest()


def look_up_names(services: Services, turn: Turn, uuids: Collection[str]) -> dict[str, str]:
    """The name of each provider that exists, by uuid. Many of them are looked up in line."""
    if len(uuids) > _FEW_NAMES:
        turn.enter()
    wanted, names = list(uuids), dict[str, str]()
    for start in range(0, len(wanted), _NAMES_AT_ONCE):
        names |= services.read(names_of_providers, wanted[start : start + _NAMES_AT_ONCE])
        turn.pause()
    return names


def _counted(times: StageTimes) -> float:
    return times.seconds[Stage.DATABASE] + times.seconds[Stage.FRESHNESS]
