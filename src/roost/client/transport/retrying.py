"""Repeating requests: which, when and how often."""

from __future__ import annotations

import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

from roost.client.errors import (
    AnswerLost,
    AnswerRefused,
    NotConfigured,
    PlacementAPIConnectFailure,
    TransportFailed,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport.messages import (
    PlacementRequest,
    PlacementResponse,
    ServerAddress,
)
from roost.model.identifiers import is_uuid
from roost.model.text import without_user_info

PASSING_STATUSES = frozenset({502, 503, 504})
"""The statuses of a server or a gateway that is overloaded, or whose backend is down."""

TOO_MANY_REQUESTS = 429
"""The status of a server or a proxy that limits the rate; it did not carry the request out."""

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after which delays a transport repeats a request.

    Each delay is random between 0 and a bound that doubles each time. So clients that failed at
    the same time do not repeat at the same time. A `Retry-After` of the server adds to the delay.
    No repeat begins later than `total_seconds` after the first attempt; an answer that asks for
    a longer wait is final.
    """

    repeats: int = 3
    total_seconds: float = 60.0
    first_delay: float = 0.5
    longest_delay: float = 8.0
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    def delay(
        self,
        request: PlacementRequest,
        result: PlacementResponse | TransportFailed,
        attempts: int,
        elapsed: float,
    ) -> float | None:
        """The seconds to wait before the next attempt; `None` if the result is final."""
        if attempts > self.repeats or not may_be_repeated(request, result):
            return None
        bound = min(self.longest_delay, self.first_delay * 2 ** (attempts - 1))
        delay = _asked_delay(result) + self.random() * bound
        return delay if elapsed + delay <= self.total_seconds else None


def is_repeatable(request: PlacementRequest) -> bool:
    """Whether sending the request twice has the effect of sending it once."""
    return request.repeatable or request.method in ("GET", "HEAD")


def may_be_repeated(request: PlacementRequest, result: PlacementResponse | TransportFailed) -> bool:
    """Whether a repeat of the request is safe after this result, and may succeed.

    >>> from roost.client.errors import PlacementAPIConnectFailure
    >>> claim = PlacementRequest("POST", "/allocations")
    >>> may_be_repeated(claim, PlacementAPIConnectFailure("refused"))
    True
    >>> may_be_repeated(claim, AnswerLost("timed out"))
    False
    >>> may_be_repeated(claim, PlacementResponse(503))
    False
    >>> may_be_repeated(claim, PlacementResponse(429))
    True
    """
    if isinstance(result, PlacementResponse):
        if result.status == TOO_MANY_REQUESTS:
            return True
        return result.status in PASSING_STATUSES and is_repeatable(request)
    if isinstance(result, AnswerRefused):
        # A second answer would be as large.
        return False
    return outcome_of(result) is Outcome.NOT_DONE or is_repeatable(request)


def _asked_delay(result: PlacementResponse | TransportFailed) -> float:
    return retry_after(result) if isinstance(result, PlacementResponse) else 0.0


def retry_after(response: PlacementResponse) -> float:
    """The seconds in `Retry-After`; 0 if the header is missing or unreadable.

    >>> retry_after(PlacementResponse(503, {"retry-after": "7"}))
    7.0
    >>> retry_after(PlacementResponse(503))
    0.0
    """
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            # In HTTP both "-0000" and a missing zone mean UTC.
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, math.ceil((moment - datetime.now(UTC)).total_seconds()))
    except (ValueError, OverflowError):
        # A date that no calendar has, or that lies outside the years of Python.
        return 0.0


class RetryingTransport(ABC):
    """A transport that repeats requests; its subclasses make the single attempts.

    Every request has the global request id, if the caller gave one. An error has the request id
    of the server's answer; without an answer it has the global request id.
    """

    def __init__(
        self, *, retries: RetryPolicy | None = None, global_request_id: str | None = None
    ) -> None:
        self._retries = RetryPolicy() if retries is None else retries
        self._global_request_id = checked_request_id(global_request_id)

    @abstractmethod
    def describe(self) -> str:
        """The server that the transport talks to, without secrets."""

    def address(self) -> ServerAddress | None:
        """Where the server is; `None` if it has no address."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    def _attempt(self, request: PlacementRequest) -> PlacementResponse:
        """Send the request once. Raises `TransportFailed` with the reason as its `detail`."""

    def __str__(self) -> str:
        return self.describe()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, request: PlacementRequest) -> PlacementResponse:
        """Send a request and return its answer. Repeats the request as long as that is safe."""
        began = self._retries.clock()
        attempts, maybe_done = 0, False
        while True:
            attempts += 1
            result = self._result(request)
            elapsed = self._retries.clock() - began
            delay = self._retries.delay(request, result, attempts, elapsed)
            if delay is None:
                break
            maybe_done |= outcome_of(result) is not Outcome.NOT_DONE
            self._retries.sleep(delay)
        if isinstance(result, PlacementResponse):
            return self._without_redirect(request, result)
        raise self._failure(request, result, attempts, maybe_done) from result.__cause__

    def _headers(self, request: PlacementRequest) -> dict[str, str]:
        headers = request.headers() | {"Accept-Encoding": "identity"}
        if self._global_request_id is not None:
            headers["X-Openstack-Request-Id"] = self._global_request_id
        return headers

    def _result(self, request: PlacementRequest) -> PlacementResponse | TransportFailed:
        try:
            return self._attempt(request)
        except TransportFailed as error:
            return error

    def _without_redirect(
        self, request: PlacementRequest, response: PlacementResponse
    ) -> PlacementResponse:
        """The answer; an error if the answer is a redirect.

        The transport does not follow a redirect, because the token is for this server only. The
        status of a redirect is below 400 and would pass for success.
        """
        if response.status in REDIRECT_STATUSES:
            target = response.headers.get("location", "an address that the answer does not name")
            raise NotConfigured(
                f"{request.shown}: {self} is not the server but redirects to "
                f"{without_user_info(target)}; "
                "configure the address of the server itself",
                status=response.status,
                request_id=response.request_id,
            )
        return response

    def _failure(
        self,
        request: PlacementRequest,
        last: TransportFailed,
        attempts: int,
        earlier_maybe_done: bool,
    ) -> TransportFailed:
        """The last failure, with the number of attempts.

        If the server may have carried out an earlier attempt, the failure is `AnswerLost`, even
        if the last attempt did not reach the server.
        """
        kind = type(last)
        count = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        if earlier_maybe_done and outcome_of(last) is Outcome.NOT_DONE:
            kind = AnswerLost
            count += ", the server may have carried out an earlier one"
        # Without a connection nothing was sent, so the request does not matter.
        what = "" if kind is PlacementAPIConnectFailure else f"{request.shown}: "
        return kind(
            f"{what}{last.message} ({count})",
            detail=last.detail,
            request_id=last.request_id or self._global_request_id,
        )


def checked_request_id(request_id: str | None) -> str | None:
    """The id, if it is a global request id: `req-` and a UUID."""
    if request_id is None or (
        request_id.startswith("req-") and len(request_id) == 40 and is_uuid(request_id[4:])
    ):
        return request_id
    raise NotConfigured(
        f"the global request id {request_id!r} is not 'req-' followed by a UUID with dashes; "
        "servers would ignore it"
    )
