"""What the agent says again, and when."""

from __future__ import annotations

import logging
import threading

from roost.cli.agent_log import REMEMBERED, REPEAT_SECONDS, RepeatFilter


def record(
    message: str, logger: str = "driver", error: Exception | None = None
) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, None)
    return logging.LogRecord(logger, logging.WARNING, "file.py", 1, "%s", (message,), exc_info)


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_same_is_said_again_only_after_a_while() -> None:
    time = Time()
    told = RepeatFilter(time)
    assert told.filter(record("sdx is odd"))
    assert told.filter(record("sdy is odd"))
    time.now += REPEAT_SECONDS - 1
    assert not told.filter(record("sdx is odd"))
    time.now += 1
    assert told.filter(record("sdx is odd"))
    assert not told.filter(record("sdx is odd"))


def test_what_others_say_and_other_errors_are_not_the_same() -> None:
    told = RepeatFilter()
    assert told.filter(record("no"))
    assert told.filter(record("no", logger="another"))
    assert told.filter(record("no", error=KeyError("a")))
    assert told.filter(record("no", error=KeyError("b")))
    assert not told.filter(record("no", error=KeyError("b")))


def test_the_loop_decides_by_itself_what_to_say_again() -> None:
    told = RepeatFilter()
    again = record("The driver raised what it should not", logger="roost.client.agent.agent")
    assert told.filter(again)
    assert told.filter(again)


def test_what_is_remembered_is_bounded() -> None:
    told = RepeatFilter()
    for number in range(3 * REMEMBERED):
        assert told.filter(record(f"disk {number} is odd"))
    assert len(told._said) == REMEMBERED
    assert not told.filter(record(f"disk {3 * REMEMBERED - 1} is odd"))


def test_threads_may_log_at_once() -> None:
    told = RepeatFilter()
    passed: list[int] = []

    def log() -> None:
        passed.extend(number for number in range(500) if told.filter(record(str(number))))

    threads = [threading.Thread(target=log) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(passed) == list(range(500))
