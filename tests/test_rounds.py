"""Searches that wait together share the result of one round."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from roost import turns
from roost.turns import Rounds, SearchTooLong, TooManySearches, Turns
from support.waiting import SECONDS_MAX, wait_until

GUESTS = 5


class Found:
    """What a round finds."""


class NotingTurns(Turns):
    """Turns that count the searches that have come: each waits for a round by then."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = 0

    def join(self) -> None:
        super().join()
        self.joined += 1


class Crowd:
    """Searches in threads of their own, whose work stands still until the test lets it go on."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.rounds: Rounds[Found] = Rounds()
        self.turns = NotingTurns()
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.works = 0
        self._pool = pool

    def come(
        self, work: Callable[[], Found] = Found, wait_seconds: float = SECONDS_MAX
    ) -> Future[Found]:
        """Let a search come; it waits for a round, or leads one, as soon as this returns."""
        before = self.turns.joined

        def share() -> Found:
            with self.turns.turn(wait_seconds=wait_seconds) as turn:
                return self.rounds.share(turn, lambda: self._held(work))

        future = self._pool.submit(share)
        wait_until(lambda: self.turns.joined > before or future.done())
        return future

    def await_work(self) -> None:
        """Wait until a round is under way."""
        assert self.begun.acquire(timeout=SECONDS_MAX)

    def _held(self, work: Callable[[], Found]) -> Found:
        self.works += 1
        self.begun.release()
        assert self.go_on.acquire(timeout=SECONDS_MAX)
        return work()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    with ThreadPoolExecutor(3 * GUESTS) as pool:
        yield Crowd(pool)


def test_searches_that_come_during_a_round_share_the_next_one(crowd: Crowd) -> None:
    first = crowd.come()
    crowd.await_work()
    later = [crowd.come() for _ in range(GUESTS)]
    assert crowd.works == 1
    crowd.go_on.release()
    crowd.await_work()
    assert not any(future.done() for future in later)
    crowd.go_on.release()
    found = [future.result(SECONDS_MAX) for future in later]
    assert len(set(map(id, found))) == 1
    assert found[0] is not first.result(SECONDS_MAX)
    assert crowd.works == 2


def test_the_result_of_a_round_is_freed_with_its_last_guest(crowd: Crowd) -> None:
    first = crowd.come()
    crowd.await_work()
    later = [crowd.come() for _ in range(GUESTS)]
    crowd.go_on.release(2)
    results = {id(future): weakref.ref(future.result(SECONDS_MAX)) for future in (first, *later)}
    del first, later
    wait_until(lambda: all(reference() is None for reference in results.values()))


def fail_too_long() -> Found:
    raise SearchTooLong("more than 10 seconds of work")


def fail_by_waiting() -> Found:
    raise TooManySearches("a large search waited 1 seconds for others")


def test_work_that_takes_too_long_fails_for_all_its_guests(crowd: Crowd) -> None:
    first = crowd.come()
    crowd.await_work()
    later = [crowd.come(fail_too_long) for _ in range(GUESTS)]
    crowd.go_on.release(2)
    first.result(SECONDS_MAX)
    for future in later:
        with pytest.raises(SearchTooLong, match="more than 10 seconds of work"):
            future.result(SECONDS_MAX)
    assert crowd.works == 2


def test_a_leader_that_gives_up_leaves_the_round_to_the_next_guest(crowd: Crowd) -> None:
    first = crowd.come(fail_by_waiting)
    crowd.await_work()
    later = [crowd.come() for _ in range(GUESTS)]
    crowd.go_on.release(2)
    with pytest.raises(TooManySearches):
        first.result(SECONDS_MAX)
    assert len({id(future.result(SECONDS_MAX)) for future in later}) == 1
    assert crowd.works == 2


def test_a_guest_that_waits_too_long_leaves(crowd: Crowd) -> None:
    first = crowd.come()
    crowd.await_work()
    impatient = crowd.come(wait_seconds=0.01)
    with pytest.raises(TooManySearches, match=r"waited 0\.01 seconds"):
        impatient.result(SECONDS_MAX)
    patient = crowd.come()
    crowd.go_on.release(2)
    assert first.result(SECONDS_MAX) is not patient.result(SECONDS_MAX)
    assert crowd.works == 2


def test_guests_count_as_large_searches(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_SEARCHES_MAX", 2)
    first = crowd.come()
    crowd.await_work()
    second = crowd.come()
    with pytest.raises(TooManySearches, match="2 large searches"):
        crowd.come().result(SECONDS_MAX)
    crowd.go_on.release(2)
    first.result(SECONDS_MAX)
    second.result(SECONDS_MAX)
