"""The filter of repeated log records of the agent."""

from __future__ import annotations

import logging
import threading

from roost.cli.agent_events import REMEMBERED, REPEAT_SECONDS, RepeatFilter


def record(
    message: str, logger: str = "driver", error: Exception | None = None
) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, None)
    return logging.LogRecord(logger, logging.WARNING, "file.py", 1, "%s", (message,), exc_info)


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_repeated_record_passes_again_only_after_the_interval() -> None:
    time = Time()
    log_filter = RepeatFilter(time)
    assert log_filter.filter(record("sdx is odd"))
    assert log_filter.filter(record("sdy is odd"))
    time.now += REPEAT_SECONDS - 1
    assert not log_filter.filter(record("sdx is odd"))
    time.now += 1
    assert log_filter.filter(record("sdx is odd"))
    assert not log_filter.filter(record("sdx is odd"))


def test_records_of_other_loggers_or_with_other_errors_pass() -> None:
    log_filter = RepeatFilter()
    assert log_filter.filter(record("no"))
    assert log_filter.filter(record("no", logger="another"))
    assert log_filter.filter(record("no", error=KeyError("a")))
    assert log_filter.filter(record("no", error=KeyError("b")))
    assert not log_filter.filter(record("no", error=KeyError("b")))


def test_records_of_the_agent_loop_always_pass() -> None:
    log_filter = RepeatFilter()
    again = record("The driver raised what it should not", logger="roost.client.agent.agent")
    assert log_filter.filter(again)
    assert log_filter.filter(again)


def test_the_filter_forgets_the_oldest_records() -> None:
    log_filter = RepeatFilter()
    for number in range(3 * REMEMBERED):
        assert log_filter.filter(record(f"disk {number} is odd"))
    assert not log_filter.filter(record(f"disk {3 * REMEMBERED - 1} is odd"))
    assert log_filter.filter(record("disk 0 is odd"))


def test_threads_may_log_at_the_same_time() -> None:
    log_filter = RepeatFilter()
    passed: list[int] = []

    def log() -> None:
        passed.extend(number for number in range(500) if log_filter.filter(record(str(number))))

    threads = [threading.Thread(target=log) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(passed) == list(range(500))
