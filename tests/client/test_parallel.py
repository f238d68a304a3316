"""Several threads work on a sequence of things, and the results come in its order."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from roost.client.reading.parallel import in_order
from support.waiting import SECONDS_MAX, wait_until


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_come_in_the_order_of_the_things(threads: int) -> None:
    def work(number: int) -> int:
        time.sleep(0.002 if number % 3 == 0 else 0)
        return number * number

    assert list(in_order(range(200), work, threads)) == [number**2 for number in range(200)]
    assert list(in_order([], work, threads)) == []


def test_the_threads_work_at_the_same_time() -> None:
    together = threading.Barrier(4)
    assert list(in_order("abcd", lambda _: together.wait(SECONDS_MAX) >= 0, 4)) == [True] * 4


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_comes_at_the_place_of_its_thing(threads: int) -> None:
    def work(number: int) -> int:
        if number == 5:
            raise ValueError(number)
        return number

    results = in_order(range(10), work, threads)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="5"):
        next(results)


def test_few_things_are_begun_before_the_first_result_is_taken() -> None:
    taken: list[int] = []

    def things() -> Iterator[int]:
        for number in range(10_000):
            taken.append(number)
            yield number

    results = in_order(things(), lambda number: number, 4)
    assert next(results) == 0
    assert len(taken) <= 4 * 8
    results.close()  # type: ignore[attr-defined]  # It is a generator.


def test_the_end_of_the_iteration_leaves_the_rest_undone() -> None:
    begun: list[int] = []
    blocked = threading.Event()
    before = threading.active_count()

    def work(number: int) -> int:
        begun.append(number)
        if number:
            blocked.wait(SECONDS_MAX)
        return number

    results = in_order(range(30), work, 2)
    assert next(results) == 0
    # The close does not wait for the work that is blocked.
    results.close()  # type: ignore[attr-defined]  # It is a generator.
    blocked.set()
    wait_until(lambda: threading.active_count() <= before)
    assert len(begun) <= 5
