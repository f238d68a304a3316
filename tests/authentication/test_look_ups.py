"""Look-ups that share places, threads and turns between the addresses of clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from roost.api.authentication import look_ups
from roost.api.authentication.look_ups import LookUps
from roost.api.authentication.refusals import IdentityUnavailable
from support.waiting import SECONDS_MAX, wait_until


class SlowServer:
    """Work that ends when the test lets it end, and says in which order it began."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.answering = threading.Event()

    def work(self, name: str) -> Callable[[], str]:
        def answer() -> str:
            self.began.append(name)
            self.answering.wait(SECONDS_MAX)
            return name

        return answer


@pytest.fixture
def server() -> Iterator[SlowServer]:
    slow = SlowServer()
    yield slow
    slow.answering.set()


@pytest.fixture
def pool(server: SlowServer) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(80) as threads:
        yield threads
        server.answering.set()


def refused(asked: list[Future[str]]) -> list[Future[str]]:
    return [one for one in asked if one.done() and one.exception() is not None]


def test_one_address_cannot_take_all_places(server: SlowServer, pool: ThreadPoolExecutor) -> None:
    shared: LookUps[str] = LookUps("Keystone", SECONDS_MAX)
    flood = [
        pool.submit(shared.find, number, server.work("garbage"), "192.0.2.66")
        for number in range(70)
    ]
    wait_until(lambda: len(refused(flood)) == 70 - look_ups.WAITING_MAX // 2)
    valid = [
        pool.submit(shared.find, f"valid {number}", server.work("valid"), f"192.0.2.{number}")
        for number in range(4)
    ]
    server.answering.set()
    assert [one.result(SECONDS_MAX) for one in valid] == ["valid"] * 4
    with pytest.raises(IdentityUnavailable, match=r"32 requests wait for Keystone already"):
        refused(flood)[0].result()


def test_addresses_take_turns(
    server: SlowServer, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ups, "LOOK_UPS_MAX", 1)
    shared: LookUps[str] = LookUps("Keystone", SECONDS_MAX)
    asked = [pool.submit(shared.find, "first", server.work("first"), "192.0.2.66")]
    wait_until(lambda: server.began == ["first"])
    entered = 1
    for name, address in [*[("garbage", "192.0.2.66")] * 3, ("valid", "192.0.2.7")]:
        asked.append(pool.submit(shared.find, entered, server.work(name), address))
        entered += 1
        wait_until(lambda count=entered: shared.waiting == count)  # type: ignore[misc]
    server.answering.set()
    for one in asked:
        one.result(SECONDS_MAX)
    assert server.began == ["first", "garbage", "valid", "garbage", "garbage"]


def test_threads_that_do_not_start_do_not_end_all_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: LookUps[str] = LookUps("Keystone", SECONDS_MAX)

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        for _ in range(look_ups.LOOK_UPS_MAX + 1):
            with pytest.raises(IdentityUnavailable, match="no thread is free"):
                shared.find("key", lambda: "found")
    assert shared.find("key", lambda: "found") == "found"


def test_threads_of_overdue_look_ups_are_bounded(
    server: SlowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ups, "THREADS_MAX", 3)
    shared: LookUps[str] = LookUps("Keystone", 0.02)

    def is_refused_at_once() -> bool:
        with pytest.raises(IdentityUnavailable) as refusal:
            shared.find(object(), server.work("stuck"))
        return "3 threads wait for overdue answers" in str(refusal.value)

    # On a busy machine, a request may end before a thread has begun its look-up.
    wait_until(is_refused_at_once)
    assert server.began == ["stuck"] * 3
    server.answering.set()
    wait_until(lambda: finds(shared))


def finds(shared: LookUps[str]) -> bool:
    try:
        return shared.find("later", lambda: "found") == "found"
    except IdentityUnavailable:
        return False
