"""Slow requests: a warning with the time of each stage, and the account of a slow search."""

from __future__ import annotations

import logging
import queue
import threading
from typing import NamedTuple

from roost.api.http.requests import UNKNOWN_ROUTE, Request
from roost.api.observation.request_log import LogContext
from roost.model.candidate_query.query import CandidateQuery
from roost.model.limits import Limits
from roost.model.text import printable
from roost.search.forest.forest import Forest
from roost.service.questions.explain import describe_account
from roost.turns import TURNS, SearchTooLong, TooManySearches, Turn

_LOG = logging.getLogger(__name__)

# Accounts that wait to be made. Each keeps a forest alive.
_WAITING_MAX = 2
_ADDRESS_LENGTH_MAX = 1000


class SearchAsked(NamedTuple):
    """What a request for candidates searched, and in which turn."""

    forest: Forest
    query: CandidateQuery
    turn: Turn


class SlowRequests:
    """Writes the warnings. A thread of its own repeats slow searches to account for them."""

    def __init__(self, seconds: float, limits: Limits) -> None:
        self._seconds = seconds
        self._limits = limits
        self._waiting: queue.Queue[tuple[Request, SearchAsked]] = queue.Queue(_WAITING_MAX)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, request: Request, status: int, seconds: float) -> None:
        """Write a warning if the request took long."""
        if not self._seconds or seconds < self._seconds:
            return
        stages = ", ".join(f"{name} {spent:.3f}" for name, spent in request.times.by_name().items())
        _LOG.warning(
            'Slow request: "%s %s" took %.3f seconds and got %d; seconds by stage: %s',
            printable(request.method),
            _address(request),
            seconds,
            status,
            stages or "none",
            extra={"context": LogContext(request)},
        )
        search = request.search
        # An account costs as much as the search. It would say nothing about a request that waited.
        if search is not None and search.turn.worked_seconds >= self._seconds:
            self._account_later(request, search)

    def _account_later(self, request: Request, search: SearchAsked) -> None:
        try:
            self._waiting.put_nowait((request, search))
        except queue.Full:
            # Under load, most slow searches are slow for the same reason.
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="roost-slow-searches", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            request, search = self._waiting.get()
            try:
                self._write_account(request, search)
            except Exception:
                _LOG.exception("The account of a slow search failed")
            # While the thread waits, the forest must not stay alive.
            del request, search

    def _write_account(self, request: Request, search: SearchAsked) -> None:
        limits = self._limits
        try:
            with TURNS.turn(limits.max_search_seconds, limits.search_wait_seconds) as turn:
                sentences = describe_account(search.forest, search.query, turn.pause)
        except (SearchTooLong, TooManySearches) as error:
            sentences = [f"Its account was given up: {error}."]
        _LOG.warning(
            "Slow search, of %d providers. %s",
            search.forest.provider_count,
            " ".join(sentences),
            extra={"context": LogContext(request)},
        )


def _address(request: Request) -> str:
    """The route and the query; the path alone if no route is known, as for a refused token.

    The query of a request that Roost does not know may have secrets of another service.
    """
    if request.route == UNKNOWN_ROUTE:
        return request.quoted_path[:_ADDRESS_LENGTH_MAX]
    query = printable(request.environ.get("QUERY_STRING") or "")[:_ADDRESS_LENGTH_MAX]
    return f"{request.route}?{query}" if query else request.route
