"""Large searches take turns; small searches do not wait."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from roost import turns
from roost.turns import Line, SearchTooLong, TooManySearches, Turns
from support.waiting import SECONDS_MAX, wait_until_blocked


def in_threads(works: list[Callable[[], None]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive()


def work_for(seconds: float) -> None:
    """Use so much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_first_thread_of_a_line_works_first() -> None:
    line, order = Line(1), list[int]()
    line.enter()
    threads = []
    for number in range(5):

        def wait(number: int = number) -> None:
            line.enter()
            order.append(number)
            line.leave()

        threads += in_threads([wait])
        wait_until_blocked(threads[-1])
    line.leave()
    joined(threads)
    assert order == [0, 1, 2, 3, 4]


def test_few_large_searches_work_at_a_time_and_all_end() -> None:
    together = Turns()
    working: set[int] = set()
    seen: list[int] = []
    ended: list[int] = []

    def search(number: int) -> None:
        with together.turn() as turn:
            work_for(0.02)
            turn.pause()
            for _ in range(8):
                working.add(number)
                seen.append(len(working))
                work_for(0.005)
                working.discard(number)
                turn.pause()
        ended.append(number)

    joined(in_threads([partial(search, number) for number in range(6)]))
    assert sorted(ended) == list(range(6))
    assert max(seen) == turns._WORKING_MAX


def test_a_small_search_does_not_wait_for_large_ones() -> None:
    together = Turns()
    for _ in range(turns._WORKING_MAX):
        together.working.enter()

    def search() -> None:
        with together.turn() as turn:
            turn.pause()

    joined(in_threads([search]))


def test_few_very_large_searches_take_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_VERY_LARGE_SECONDS", 0.02)
    together = Turns()
    large: set[int] = set()
    seen: list[int] = []

    def search(number: int) -> None:
        with together.turn() as turn:
            for _ in range(12):
                work_for(0.005)
                turn.pause()
                if turn.is_very_large:
                    large.add(number)
                    seen.append(len(large))
            large.discard(number)

    joined(in_threads([partial(search, number) for number in range(8)]))
    assert 1 <= max(seen) <= turns._VERY_LARGE_MAX


def test_an_unread_answer_holds_no_turn() -> None:
    together = Turns()

    def pieces() -> Iterator[int]:
        yield from range(3)

    with together.turn() as turn:
        unread = [turn.pieces(pieces()) for _ in range(10)]
    assert [next(stream) for stream in unread] == [0] * 10
    with together.turn() as turn:
        assert list(turn.pieces(pieces())) == [0, 1, 2]


def test_a_search_that_fails_leaves_the_line() -> None:
    together = Turns()

    def search() -> None:
        with together.turn() as turn:
            work_for(0.02)
            turn.pause()
            raise ValueError("in the middle")

    for _ in range(turns._WORKING_MAX + 1):
        with pytest.raises(ValueError, match="in the middle"):
            search()


def test_threads_change_more_often_only_while_a_large_search_works() -> None:
    usual = sys.getswitchinterval()
    together = Turns()
    with together.turn() as turn:
        turn.pause()
        assert sys.getswitchinterval() == usual
        work_for(0.02)
        turn.pause()
        assert sys.getswitchinterval() < usual
    assert sys.getswitchinterval() == usual
    pieces = turn.pieces(iter([1, 2]))
    assert list(pieces) == [1, 2]
    assert sys.getswitchinterval() == usual


def large_search(together: Turns, work_seconds: float = 30, wait_seconds: float = 30) -> None:
    """A search that would work for some seconds."""
    with together.turn(work_seconds, wait_seconds) as turn:
        for _ in range(400):
            work_for(0.005)
            turn.pause()


def test_a_search_that_works_for_too_long_ends() -> None:
    together = Turns()
    began = time.thread_time()
    for _ in range(turns._WORKING_MAX + 1):
        with pytest.raises(SearchTooLong, match=r"more than 0\.1 seconds of work"):
            large_search(together, work_seconds=0.1)
    assert time.thread_time() - began < 1.5


def test_a_piece_of_an_answer_that_takes_too_long_ends_the_answer() -> None:
    together = Turns()

    def pieces(turn: turns.Turn) -> Iterator[int]:
        for number in range(4):
            work_for(0.06)
            turn.pause()
            yield number
        for _ in range(400):
            work_for(0.005)
            turn.pause()

    with together.turn(0.1) as turn:
        stream = turn.pieces(pieces(turn))
    assert [next(stream) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(SearchTooLong):
        next(stream)


@pytest.mark.parametrize("busy", ["working", "very_large"])
def test_a_search_that_waits_for_too_long_ends_and_leaves_the_line(
    monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    monkeypatch.setattr(turns, "_VERY_LARGE_SECONDS", 0.05)
    usual = sys.getswitchinterval()
    together = Turns()
    line: Line = getattr(together, busy)
    count = turns._WORKING_MAX if busy == "working" else turns._VERY_LARGE_MAX
    for _ in range(count):
        line.enter()
    for _ in range(3):
        with pytest.raises(TooManySearches, match=r"waited 0\.1 seconds"):
            large_search(together, wait_seconds=0.1)
    assert sys.getswitchinterval() == usual
    for _ in range(count):
        line.leave()
    with together.turn() as turn:
        work_for(0.1)
        turn.pause()


def test_a_search_that_lets_others_pass_does_not_wait_for_ever() -> None:
    together = Turns()
    usual = sys.getswitchinterval()
    for _ in range(turns._WORKING_MAX - 1):
        together.working.enter()
    failed = threading.Event()

    def search() -> None:
        with pytest.raises(TooManySearches):
            large_search(together, wait_seconds=0.1)
        failed.set()

    searching = in_threads([search])
    time.sleep(0.05)
    # This thread takes the place of the search at the end of its slice, and keeps it.
    together.working.enter()
    assert failed.wait(SECONDS_MAX)
    joined(searching)
    assert sys.getswitchinterval() == usual
    for _ in range(turns._WORKING_MAX):
        together.working.leave()
    joined(in_threads([partial(large_search_that_ends, together)]))


def large_search_that_ends(together: Turns) -> None:
    with together.turn() as turn:
        for _ in range(10):
            work_for(0.005)
            turn.pause()


def test_a_line_loses_no_place_to_threads_that_stop_waiting() -> None:
    line = Line(1)
    line.enter()
    outcomes: list[bool] = []

    def wait(seconds: float) -> None:
        if entered := line.enter(seconds):
            line.leave()
        outcomes.append(entered)

    threads = in_threads([partial(wait, number / 1000) for number in range(40)])
    time.sleep(0.02)
    line.leave()
    joined(threads)
    assert len(outcomes) == 40
    assert line.enter(0)


def test_a_search_that_is_known_to_be_large_waits_before_its_work() -> None:
    together = Turns()
    for _ in range(turns._WORKING_MAX):
        together.working.enter()
    with pytest.raises(TooManySearches), together.turn(wait_seconds=0.01) as turn:
        turn.enter()
    # A wait in vain is a wait, too.
    assert turn.waited_seconds >= 0.01
    with pytest.raises(TooManySearches), together.turn(wait_seconds=0.01) as turn:
        turn.enter_as_very_large()
    together.working.leave()
    with together.turn(wait_seconds=0) as turn:
        turn.enter()
        with pytest.raises(TooManySearches), together.turn(wait_seconds=0) as another:
            another.enter()


def test_few_searches_that_are_known_to_be_very_large_take_part_at_a_time() -> None:
    together = Turns()
    for _ in range(turns._VERY_LARGE_MAX):
        together.very_large.enter()
    with pytest.raises(TooManySearches), together.turn(wait_seconds=0.01) as turn:
        turn.enter_as_very_large()
    with together.turn(wait_seconds=0) as turn:
        turn.enter()


def test_work_is_the_time_of_the_search_and_of_the_pieces_of_its_answer() -> None:
    together = Turns()

    def pieces() -> Iterator[int]:
        for number in range(2):
            work_for(0.02)
            yield number

    with together.turn() as turn:
        work_for(0.03)
        # A wait is no work.
        time.sleep(0.2)
        stream = turn.pieces(pieces())
    assert 0.03 <= turn.worked_seconds < 0.2
    assert list(stream) == [0, 1]
    assert 0.07 <= turn.worked_seconds < 0.2


def test_what_a_search_reads_is_none_of_its_work() -> None:
    together = Turns()
    with together.turn(work_seconds=0.1) as turn:
        turn.enter()
        for _ in range(10):
            work_for(0.05)
            turn.pause_reading()
        work_for(0.15)
        with pytest.raises(SearchTooLong):
            turn.pause()
