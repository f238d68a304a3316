"""Rounds: searches that wait together share one result, of work that begins after all of them came.

A search that reads everything takes seconds, and much memory. So there is one round of its work at
a time, whatever the number of clients. A client that comes during a round waits for the next one:
what that round reads is not older than the client's request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from roost.search.turns import SearchTooLong, Turn

T = TypeVar("T")


class _Guest(Generic[T]):
    """A search that waits for a round."""

    def __init__(self) -> None:
        # What the round found. It lives as long as its guests do.
        self.found: list[T] = []
        self.failure: str | None = None

    @property
    def is_served(self) -> bool:
        return bool(self.found) or self.failure is not None


class Rounds(Generic[T]):
    """The rounds of one kind of work. For any number of threads."""

    def __init__(self) -> None:
        # Guards the attributes below. Guests wait here until a round ends.
        self._ended = threading.Condition(threading.Lock())
        self._is_under_way = False
        # The guests of the next round.
        self._waiting: list[_Guest[T]] = []

    def share(self, turn: Turn, work: Callable[[], T]) -> T:
        """What `work` returns, in this thread or in that of another guest of the same round.

        Work that takes too long fails for all guests of its round. After any other failure, the
        next guest tries it again.
        """
        guest: _Guest[T] = _Guest()
        with self._ended:
            self._waiting.append(guest)
        try:
            turn.wait(partial(self._may_go_on, guest))
        except BaseException:
            self._forget(guest)
            raise
        if not guest.is_served:
            return self._lead(guest, work)
        if guest.failure is not None:
            raise SearchTooLong(guest.failure)
        return guest.found[0]

    def _may_go_on(self, guest: _Guest[T], seconds: float) -> bool:
        """Wait until the guest is served, or has to lead a round; false after so many seconds."""

        def is_called() -> bool:
            return guest.is_served or not self._is_under_way

        with self._ended:
            if not self._ended.wait_for(is_called, min(seconds, threading.TIMEOUT_MAX)):
                return False
            if not guest.is_served:
                self._is_under_way = True
            return True

    def _forget(self, guest: _Guest[T]) -> None:
        with self._ended:
            if guest in self._waiting:
                self._waiting.remove(guest)

    def _lead(self, leader: _Guest[T], work: Callable[[], T]) -> T:
        """Do the work for all guests that have come until now."""
        with self._ended:
            self._waiting.remove(leader)
            guests, self._waiting = self._waiting, []
        try:
            leader.found.append(work())
        except SearchTooLong as error:
            leader.failure = str(error)
            raise
        finally:
            with self._ended:
                self._is_under_way = False
                if leader.is_served:
                    for guest in guests:
                        guest.found, guest.failure = leader.found, leader.failure
                else:
                    self._waiting = guests + self._waiting
                self._ended.notify_all()
        return leader.found[0]
