"""Which requests are sent again after a mishap, when, and how often."""

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

from roost.client.errors import AnswerLost, NotConfigured, TransportFailed
from roost.client.transport.messages import Request, Response
from roost.model.identifiers import is_uuid

PASSING_STATUSES = frozenset({502, 503, 504})
"""What a server or a gateway before it answers while something is down or overloaded."""

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after what delays a request is repeated.

    The delay before each repeat is random between nothing and a bound that doubles each time, so
    that clients which failed together do not come back together. What the server says in
    `Retry-After` comes before it. No repeat begins later than `total_seconds` after the first
    attempt; an answer that asks to wait longer is therefore the final one.
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
        request: Request,
        outcome: Response | TransportFailed,
        attempts: int,
        elapsed: float,
    ) -> float | None:
        """How long to wait before sending again; None if the outcome is final."""
        if attempts > self.repeats or not may_be_repeated(request, outcome):
            return None
        bound = min(self.longest_delay, self.first_delay * 2 ** (attempts - 1))
        delay = _asked_delay(outcome) + self.random() * bound
        return delay if elapsed + delay <= self.total_seconds else None


def is_repeatable(request: Request) -> bool:
    """Whether sending the request twice does what sending it once does."""
    return request.repeatable or request.method in ("GET", "HEAD")


def may_be_repeated(request: Request, outcome: Response | TransportFailed) -> bool:
    """Whether the request may be sent again after what came of it, and whether that may help.

    >>> from roost.client.errors import PlacementAPIConnectFailure
    >>> claim = Request("POST", "/allocations")
    >>> may_be_repeated(claim, PlacementAPIConnectFailure("refused"))
    True
    >>> may_be_repeated(claim, AnswerLost("timed out")), may_be_repeated(claim, Response(503))
    (False, False)
    """
    if isinstance(outcome, Response):
        return outcome.status in PASSING_STATUSES and is_repeatable(request)
    return not outcome.maybe_done or is_repeatable(request)


def _asked_delay(outcome: Response | TransportFailed) -> float:
    return retry_after(outcome) if isinstance(outcome, Response) else 0.0


def retry_after(response: Response) -> float:
    """The seconds for which the server asks to be left alone; 0 if it says nothing readable.

    >>> retry_after(Response(503, {"retry-after": "7"})), retry_after(Response(503))
    (7.0, 0.0)
    """
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        # "-0000" and no zone at all both mean UTC in HTTP.
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, math.ceil((moment - datetime.now(UTC)).total_seconds()))


class RetryingTransport(ABC):
    """A transport that repeats what can be repeated; how one attempt is made is left open.

    Every request carries the caller's global request id, if he has one. An error carries the id
    that the server gave the request, or the global one if no answer told.
    """

    def __init__(
        self, *, retries: RetryPolicy | None = None, global_request_id: str | None = None
    ) -> None:
        self._retries = RetryPolicy() if retries is None else retries
        self._global_request_id = checked_request_id(global_request_id)

    @abstractmethod
    def describe(self) -> str:
        """Where it talks to, without secrets."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connections."""

    @abstractmethod
    def _attempt(self, request: Request) -> Response:
        """Send once. Raises `TransportFailed` with the reason as its `detail`."""

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

    def send(self, request: Request) -> Response:
        """Carry one request there and its answer back, repeating it as far as that is safe."""
        began = self._retries.clock()
        attempts, maybe_done = 0, False
        while True:
            attempts += 1
            outcome = self._outcome(request)
            elapsed = self._retries.clock() - began
            delay = self._retries.delay(request, outcome, attempts, elapsed)
            if delay is None:
                break
            maybe_done |= isinstance(outcome, Response) or outcome.maybe_done
            self._retries.sleep(delay)
        if isinstance(outcome, Response):
            return self._without_redirect(request, outcome)
        raise self._failure(request, outcome, attempts, maybe_done) from outcome.__cause__

    def _headers(self, request: Request) -> dict[str, str]:
        headers = request.headers()
        if self._global_request_id is not None:
            headers["X-Openstack-Request-Id"] = self._global_request_id
        return headers

    def _outcome(self, request: Request) -> Response | TransportFailed:
        try:
            return self._attempt(request)
        except TransportFailed as error:
            return error

    def _without_redirect(self, request: Request, response: Response) -> Response:
        """The answer, unless it sends elsewhere: that is neither success nor for us to follow.

        The token is for this server only, and a status below 400 would pass for success.
        """
        if response.status in REDIRECT_STATUSES:
            target = response.headers.get("location", "an address that it does not name")
            raise NotConfigured(
                f"{request}: {self} is not the server but redirects to {target}; "
                "configure the address of the server itself",
                status=response.status,
                request_id=response.request_id,
            )
        return response

    def _failure(
        self, request: Request, last: TransportFailed, attempts: int, earlier_maybe_done: bool
    ) -> TransportFailed:
        """The last failure with all that is known about the request.

        If an earlier attempt may have been carried out, then the request may have been, even if
        the last attempt did not get that far.
        """
        kind = type(last)
        count = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        if earlier_maybe_done and not last.maybe_done:
            kind = AnswerLost
            count += ", an earlier one may have been carried out"
        return kind(
            f"{request}: {last.message} ({count})",
            detail=last.detail,
            request_id=last.request_id or self._global_request_id,
        )


def checked_request_id(request_id: str | None) -> str | None:
    """The id, if it is one that servers take as a global request id: `req-` and a UUID."""
    if request_id is None or (
        request_id.startswith("req-") and len(request_id) == 40 and is_uuid(request_id[4:])
    ):
        return request_id
    raise NotConfigured(
        f"the global request id {request_id!r} is not 'req-' followed by a UUID with dashes; "
        "servers would ignore it"
    )
