"""Which requests a transport repeats, when, and the errors of the last attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from roost.client.errors import (
    AnswerLost,
    NotConfigured,
    PlacementAPIConnectFailure,
    TransportFailed,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.retrying import RetryingTransport, RetryPolicy, retry_after

GET = PlacementRequest("GET", "/usages")
POST = PlacementRequest("POST", "/allocations", {})
REPEATABLE_PUT = PlacementRequest("PUT", "/traits/CUSTOM_GOLD", repeatable=True)

REFUSED = PlacementAPIConnectFailure("no connection", detail="refused")
LOST = AnswerLost("no answer", detail="timed out")
BUSY = PlacementResponse(503)
DONE = PlacementResponse(200)


@dataclass
class Time:
    """A clock that advances only by sleeping."""

    now: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


class Scripted(RetryingTransport):
    """A transport whose attempts have these outcomes, each after `taking` seconds."""

    def __init__(
        self,
        *outcomes: PlacementResponse | TransportFailed,
        repeats: int = 3,
        total_seconds: float = 60.0,
        taking: float = 0.0,
        chance: float = 1.0,
        global_request_id: str | None = None,
    ) -> None:
        self.time = Time()
        policy = RetryPolicy(
            repeats=repeats,
            total_seconds=total_seconds,
            sleep=self.time.sleep,
            random=lambda: chance,
            clock=self.time.clock,
        )
        super().__init__(retries=policy, global_request_id=global_request_id)
        self._outcomes: Iterator[PlacementResponse | TransportFailed] = iter(outcomes)
        self._taking = taking
        self.attempts = 0

    def describe(self) -> str:
        return "a script"

    def close(self) -> None:
        pass

    def _attempt(self, request: PlacementRequest) -> PlacementResponse:
        self.attempts += 1
        self.time.now += self._taking
        outcome = next(self._outcomes)
        if isinstance(outcome, PlacementResponse):
            return outcome
        raise outcome


@pytest.mark.parametrize("request_", [GET, POST, REPEATABLE_PUT], ids=str)
def test_a_request_that_was_not_sent_is_repeated(request_: PlacementRequest) -> None:
    transport = Scripted(REFUSED, REFUSED, REFUSED, DONE)
    assert transport.send(request_) is DONE
    assert transport.attempts == 4


@pytest.mark.parametrize(
    "mishap", [LOST, PlacementResponse(502), PlacementResponse(503), PlacementResponse(504)]
)
@pytest.mark.parametrize("request_", [GET, PlacementRequest("HEAD", "/"), REPEATABLE_PUT], ids=str)
def test_a_repeatable_request_is_repeated_after_a_lost_answer(
    request_: PlacementRequest, mishap: PlacementResponse | TransportFailed
) -> None:
    assert Scripted(mishap, DONE).send(request_) is DONE


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_write_that_the_server_may_have_carried_out_is_not_repeated(method: str) -> None:
    lost = Scripted(LOST, DONE)
    with pytest.raises(AnswerLost, match=r"1 attempt\)"):
        lost.send(PlacementRequest(method, "/allocations"))
    assert lost.attempts == 1
    busy = Scripted(BUSY, DONE)
    assert busy.send(PlacementRequest(method, "/allocations")) is BUSY


@pytest.mark.parametrize("status", [200, 400, 404, 409, 500])
def test_any_other_answer_is_final(status: int) -> None:
    answer = PlacementResponse(status)
    assert Scripted(answer, DONE).send(GET) is answer


def test_the_last_failure_has_the_number_of_attempts() -> None:
    transport = Scripted(*[REFUSED] * 5)
    with pytest.raises(PlacementAPIConnectFailure, match=r"4 attempts.*refused"):
        transport.send(GET)
    assert transport.attempts == 4


def test_the_answer_of_the_last_attempt_is_returned() -> None:
    transport = Scripted(*[BUSY] * 5)
    assert transport.send(GET) is BUSY
    assert transport.attempts == 4


@pytest.mark.parametrize("first", [LOST, BUSY])
def test_a_refused_repeat_after_a_lost_answer_is_a_lost_answer(
    first: PlacementResponse | TransportFailed,
) -> None:
    transport = Scripted(first, *[REFUSED] * 3)
    with pytest.raises(AnswerLost, match="4 attempts") as caught:
        transport.send(REPEATABLE_PUT)
    assert outcome_of(caught.value) is Outcome.UNKNOWN


def test_delays_double_up_to_a_bound() -> None:
    transport = Scripted(*[REFUSED] * 8, repeats=6, total_seconds=1000)
    with pytest.raises(PlacementAPIConnectFailure):
        transport.send(GET)
    assert transport.time.sleeps == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


def test_a_delay_is_a_random_part_of_its_bound() -> None:
    for chance, sleeps in ((0.0, [0.0, 0.0]), (0.5, [0.25, 0.5])):
        transport = Scripted(REFUSED, REFUSED, DONE, chance=chance)
        transport.send(GET)
        assert transport.time.sleeps == sleeps


def test_no_repeat_begins_after_the_total_time() -> None:
    transport = Scripted(*[LOST] * 5, total_seconds=60, taking=50)
    with pytest.raises(AnswerLost, match="2 attempts"):
        transport.send(GET)


def test_a_repeat_waits_for_the_retry_after_of_the_server() -> None:
    transport = Scripted(PlacementResponse(503, {"retry-after": "7"}), DONE)
    assert transport.send(GET) is DONE
    assert transport.time.sleeps == [7.5]


@pytest.mark.parametrize("request_", [GET, POST, REPEATABLE_PUT])
def test_a_limited_rate_delays_every_request_by_its_retry_after(request_: PlacementRequest) -> None:
    limited = PlacementResponse(429, {"retry-after": "3"})
    transport = Scripted(limited, limited, DONE)
    assert transport.send(request_) is DONE
    assert transport.time.sleeps == [3.5, 4.0]


def test_a_rate_that_stays_limited_is_the_answer() -> None:
    limited = PlacementResponse(429)
    transport = Scripted(*[limited] * 4)
    assert transport.send(POST) is limited
    assert len(transport.time.sleeps) == 3


def test_an_answer_is_final_if_its_retry_after_exceeds_the_total_time() -> None:
    answer = PlacementResponse(503, {"retry-after": "3600"})
    transport = Scripted(answer, DONE)
    assert transport.send(GET) is answer
    assert transport.time.sleeps == []


def test_retry_after_may_be_a_date() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=600)
    assert 0 < retry_after(PlacementResponse(503, {"retry-after": format_datetime(soon)})) <= 601
    past = format_datetime(soon - timedelta(hours=1), usegmt=True)
    for value in (past, "soon", "-5", "1e3", "²"):
        assert retry_after(PlacementResponse(503, {"retry-after": value})) == 0.0


@pytest.mark.parametrize(
    "value",
    [
        "Sat, 01 Jan 0001 00:00:00 +2359",
        "Mon, 01 Jan 99999 00:00:00 GMT",
        # Numbers that the calendar of Python does not take.
        f"Mon, 01 Jan {10**12} 00:00:00 GMT",
        f"Mon, {10**20} Jan 2026 00:00:00 GMT",
        f"Thu, 01 Jan 2026 00:00:00 +{10**20}",
        "-1",
        "\xb2",
    ],
)
def test_a_retry_after_that_no_calendar_has_asks_for_no_delay(value: str) -> None:
    assert retry_after(PlacementResponse(503, {"retry-after": value})) == 0.0


def test_a_retry_after_without_end_is_too_long_for_any_repeat() -> None:
    far = PlacementResponse(503, {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"})
    many_digits = PlacementResponse(503, {"retry-after": "9" * 400})
    for answer in (far, many_digits):
        request = PlacementRequest("GET", "/")
        assert RetryPolicy().delay(request, answer, attempts=1, elapsed=0.0) is None


def test_a_redirect_is_an_error() -> None:
    answer = PlacementResponse(
        301, {"location": "https://elsewhere", "x-openstack-request-id": "req-1"}
    )
    with pytest.raises(NotConfigured, match="redirects to https://elsewhere") as caught:
        Scripted(answer).send(POST)
    assert (caught.value.status, caught.value.request_id) == (301, "req-1")


def test_a_failure_has_the_request_id_of_the_server_or_else_of_the_caller() -> None:
    global_id = "req-6d2a3a3c-55a1-4f3c-8f0c-9a0f4a3cf0aa"
    with pytest.raises(AnswerLost) as caught:
        Scripted(AnswerLost("broke off", request_id="req-1"), global_request_id=global_id).send(
            POST
        )
    assert caught.value.request_id == "req-1"
    with pytest.raises(AnswerLost) as caught:
        Scripted(LOST, global_request_id=global_id).send(POST)
    assert caught.value.request_id == global_id
    assert str(caught.value).endswith(f"[{global_id}]")


def test_a_failure_keeps_its_cause() -> None:
    failure = AnswerLost("no answer")
    failure.__cause__ = TimeoutError("the cause")
    with pytest.raises(AnswerLost) as caught:
        Scripted(failure).send(POST)
    assert caught.value.__cause__ is failure.__cause__


@pytest.mark.parametrize(
    "request_id",
    ["", "6d2a3a3c-55a1-4f3c-8f0c-9a0f4a3cf0aa", "req-1", "req-6d2a3a3c55a14f3c8f0c9a0f4a3cf0aa"],
)
def test_a_global_request_id_that_servers_ignore_is_refused(request_id: str) -> None:
    with pytest.raises(NotConfigured, match="global request id"):
        Scripted(global_request_id=request_id)
