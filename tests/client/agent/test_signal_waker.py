"""The waker ends a wait, also when a signal handler calls it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from roost.client.agent.agent import SignalWaker
from support.waiting import SECONDS_MAX


@pytest.fixture
def waker() -> Iterator[SignalWaker]:
    waker = SignalWaker()
    yield waker
    waker.close()


def test_a_wait_without_a_call_ends_after_its_time(waker: SignalWaker) -> None:
    assert waker.wait(0.001) is False


def test_a_negative_time_is_no_error(waker: SignalWaker) -> None:
    assert waker.wait(-1) is False


def test_a_call_before_the_wait_ends_the_wait(waker: SignalWaker) -> None:
    waker.wake()
    assert waker.wait(SECONDS_MAX) is True


def test_many_calls_end_one_wait(waker: SignalWaker) -> None:
    # More than a pipe holds.
    for _ in range(70_000):
        waker.wake()
    assert waker.wait(SECONDS_MAX) is True
    assert waker.wait(0) is False


def test_a_signal_handler_ends_a_wait(waker: SignalWaker) -> None:
    before = signal.signal(signal.SIGALRM, lambda number, frame: waker.wake())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert waker.wait(SECONDS_MAX) is True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
