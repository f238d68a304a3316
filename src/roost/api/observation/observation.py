"""The observation of requests: their metrics, their line in the log, their trace."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from copy import copy
from time import perf_counter
from typing import NamedTuple

from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.observation.request_log import log_request
from roost.api.observation.slow_requests import SlowRequests
from roost.api.observation.tracing import LOOK, begin_trace
from roost.configuration.settings import WatchSettings
from roost.metrics.catalogue import (
    CANDIDATES,
    DURATION,
    IN_FLIGHT,
    REQUESTS,
    RESPONSE_BYTES,
    SEARCHES,
    STAGE_REQUESTS,
    STAGE_SECONDS,
)
from roost.metrics.counting import TALLY
from roost.metrics.stage_times import CURRENT, STAGE_NAMES
from roost.model.limits import Limits

# The version of an open route, and of a request that was refused before its handler.
OPEN_VERSION = "-"
# Clients choose methods, so the labels are these and `other`.
_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"})
# Route and method in the histogram, for requests that were refused before their handler.
_REFUSED = ("unknown", "other")
_SUM_OFFSET = DURATION.width - 1


class _Places(NamedTuple):
    """Where the numbers of requests with the same labels are."""

    requests: int
    duration: int
    size: int
    # For each stage, its seconds and its requests.
    stages: tuple[tuple[int, int], ...]


# By route, method, version and status. One look for all numbers saves a microsecond.
_PLACES: dict[tuple[str, str, str | None, int], _Places] = TALLY.remembered()
_SOURCE_PLACES: dict[str, tuple[int, int]] = TALLY.remembered()


class Observation:
    """Observes the requests of an application."""

    def __init__(self, watch: WatchSettings, limits: Limits) -> None:
        self._slow = SlowRequests(watch.slow_request_seconds, limits)
        # To count so takes a tenth of the time of a lock.
        self._begun = itertools.count()
        self._ended = itertools.count()

    def begin(self, request: Request) -> None:
        """A request has come to this thread."""
        CURRENT.times = request.times
        next(self._begun)
        if request.began > LOOK.due:
            request.trace = begin_trace(request)

    def end(self, request: Request, response: Response, size: int, seconds: float) -> None:
        """The answer is made. `seconds` is without the time in which the client reads."""
        next(self._ended)
        _count(request, response.status, size, seconds)
        log_request(request, response, size, perf_counter() - request.began)
        self._slow.note(request, response.status, seconds)
        if request.trace is not None:
            request.trace.end(request, response.status, size)

    def sample(self) -> None:
        """Set the gauge of the requests in flight."""
        ended = next(copy(self._ended))
        IN_FLIGHT.set(max(0, next(copy(self._begun)) - ended))


class ObservedStream:
    """The pieces of an answer, whose request ends with the last one or with the connection."""

    def __init__(
        self,
        observation: Observation,
        request: Request,
        response: Response,
        pieces: Iterator[bytes],
    ) -> None:
        self._observation = observation
        self._request = request
        self._response = response
        self._pieces = pieces
        self._size = 0
        self._seconds = perf_counter() - request.began
        self._has_ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        began = perf_counter()
        # Any thread of the server may make a piece.
        CURRENT.times = self._request.times
        try:
            piece = next(self._pieces)
        except BaseException:
            self._seconds += perf_counter() - began
            self._end()
            raise
        self._seconds += perf_counter() - began
        self._size += len(piece)
        return piece

    def close(self) -> None:
        """The answer ends here, whole or not."""
        try:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
        finally:
            self._end()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._observation.end(self._request, self._response, self._size, self._seconds)


def _count(request: Request, status: int, size: int, seconds: float) -> None:
    """Add one request to the metrics, under one lock."""
    labels = request.route, request.method, request.version_label, status
    bucket = bisect_left(DURATION.bounds, seconds)
    with TALLY.lock:
        places = _PLACES.get(labels)
        if places is None:
            places = _find_places(*labels)
        requests, duration, size_place, stages = places
        values = TALLY.values
        values[requests] += 1.0
        values[duration + bucket] += 1.0
        values[duration + _SUM_OFFSET] += seconds
        values[size_place] += size
        for (spent_place, count_place), spent in zip(stages, request.times.seconds, strict=True):
            if spent:
                values[spent_place] += spent
                values[count_place] += 1.0
        if request.candidates is not None:
            source, count = request.candidates
            answers, returned = _candidate_places(source)
            values[answers] += 1.0
            values[returned] += count


def _candidate_places(source: str) -> tuple[int, int]:
    places = _SOURCE_PLACES.get(source)
    if places is None:
        places = SEARCHES.place((source,)), CANDIDATES.place(())
        _SOURCE_PLACES[source] = places
    return places


def _find_places(route: str, method: str, version: str | None, status: int) -> _Places:
    """The places for these labels; only clients that the policy admits choose a version."""
    # A route has few methods, and answers all further ones with 405.
    known = method if method in _METHODS and status != 405 else "other"
    TALLY.slot.mark_as_serving()
    places = _Places(
        REQUESTS.place((route, known, version or OPEN_VERSION, str(status))),
        DURATION.place((route, known) if version is not None else _REFUSED),
        RESPONSE_BYTES.place(()),
        tuple(
            (STAGE_SECONDS.place((name,)), STAGE_REQUESTS.place((name,))) for name in STAGE_NAMES
        ),
    )
    if method in _METHODS:
        _PLACES[route, method, version, status] = places
    return places
