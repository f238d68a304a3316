"""The observation of requests: their metrics, their line in the log, their trace."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from http import HTTPStatus
from time import perf_counter

from roost.api.request_log import log_request
from roost.api.requests import Request
from roost.api.responses import Response
from roost.api.slow_requests import SlowRequests
from roost.api.tracing import begin_trace
from roost.configuration.settings import WatchSettings
from roost.metrics.catalogue import (
    DURATION,
    IN_FLIGHT,
    REQUESTS,
    RESPONSE_BYTES,
    STAGE_REQUESTS,
    STAGE_SECONDS,
)
from roost.metrics.counting import TALLY
from roost.metrics.stages import CURRENT, STAGE_NAMES

# Clients choose methods, so the labels are these and `other`.
_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"})
_STATUSES = {status.value: str(status.value) for status in HTTPStatus}
_STAGES = tuple((name,) for name in STAGE_NAMES)
_SUM_OFFSET = DURATION.width - 1


class Observation:
    """Observes the requests of an application."""

    def __init__(self, watch: WatchSettings) -> None:
        self._slow = SlowRequests(watch.slow_request_seconds)

    def begin(self, request: Request) -> None:
        """A request has come to this thread."""
        CURRENT.times = request.times
        with TALLY.lock:
            place = IN_FLIGHT.places.get(())
            if place is None:
                place = IN_FLIGHT.place(())
                TALLY.slot.mark_as_serving()
            TALLY.values[place] += 1.0
        request.trace = begin_trace(request)

    def leave(self, request: Request) -> None:
        """The thread does something else from now on."""
        if request.trace is not None:
            request.trace.leave()

    def end(self, request: Request, response: Response, size: int, seconds: float) -> None:
        """The answer is made. `seconds` is without the time in which the client reads."""
        _count(request, response.status, size, seconds)
        log_request(request, response, size, perf_counter() - request.began)
        self._slow.note(request, response.status, seconds)
        if request.trace is not None:
            request.trace.end(request, response.status, size)


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
    """Add one request to the metrics. One lock for all of them takes a microsecond less."""
    method = request.method if request.method in _METHODS else "other"
    route = request.route
    labels = route, method, request.version_text, _STATUSES.get(status, "other")
    bucket = bisect_left(DURATION.bounds, seconds)
    with TALLY.lock:
        requests = REQUESTS.places.get(labels)
        if requests is None:
            requests = REQUESTS.place(labels)
        duration = DURATION.places.get((route, method))
        if duration is None:
            duration = DURATION.place((route, method))
        size_place = RESPONSE_BYTES.place(())
        in_flight = IN_FLIGHT.place(())
        values = TALLY.values
        values[requests] += 1.0
        values[duration + bucket] += 1.0
        values[duration + _SUM_OFFSET] += seconds
        values[size_place] += size
        values[in_flight] -= 1.0
        for stage, spent in zip(_STAGES, request.times.seconds, strict=True):
            if spent:
                values[STAGE_SECONDS.place(stage)] += spent
                values[STAGE_REQUESTS.place(stage)] += 1.0
