"""The alarm: rings for whoever waits, or will wait, also out of a signal handler."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from roost.client.agent.alarm import Alarm

# Far longer than any of these tests takes: they fail by running into it.
LONG = 30


@pytest.fixture
def alarm() -> Iterator[Alarm]:
    alarm = Alarm()
    yield alarm
    alarm.close()


def test_without_a_ring_it_waits_in_vain(alarm: Alarm) -> None:
    assert alarm.wait(0.001) is False


def test_time_that_is_over_is_no_error(alarm: Alarm) -> None:
    assert alarm.wait(-1) is False


def test_a_ring_before_the_wait_is_not_missed(alarm: Alarm) -> None:
    alarm.ring()
    assert alarm.wait(LONG) is True


def test_any_number_of_rings_are_one(alarm: Alarm) -> None:
    # More than a pipe holds.
    for _ in range(70_000):
        alarm.ring()
    assert alarm.wait(LONG) is True
    assert alarm.wait(0) is False


def test_a_signal_handler_can_ring_it(alarm: Alarm) -> None:
    before = signal.signal(signal.SIGALRM, lambda number, frame: alarm.ring())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert alarm.wait(LONG) is True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
