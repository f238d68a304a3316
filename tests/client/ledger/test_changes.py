"""Changes of the typed library, on live servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest

from roost.client import LedgerPage, Roost
from roost.client.errors import CursorExpired, NotOffered, QuestionRefused, UnreadableAnswer
from support.client.live_providers import LiveProviders
from support.servers.live_server import LiveServer, ReferenceServer
from support.stubs.placement_stub import Received, Reply, Step
from support.stubs.word_stub import WordStub
from support.transports.tampering import one_server

UNTIMELY: dict[str, Any] = {
    **dict.fromkeys(("provider", "root", "request_id", "user_id", "project_id")),
    "at": "noon",
    "kind": "usage",
    "resource_classes": [],
}


def test_only_roost_tells_changes(roost: Roost, server: LiveServer) -> None:
    if isinstance(server, ReferenceServer):
        with pytest.raises(NotOffered):
            list(roost.changes())
        return
    (page,) = roost.changes()
    assert page.changes == ()
    assert page.cursor


@one_server
def test_a_page_has_what_was_written_since_its_cursor(roost: Roost, own: LiveProviders) -> None:
    cpu = own.custom("CPU")
    host = roost.create_provider(own.name("host"), inventories={cpu: 8})
    child = roost.create_provider(own.name("child"), parent=host, inventories={cpu: 8})
    (start,) = roost.changes()
    roost.claim_on({host.name: {cpu: 1}, child.name: {cpu: 2}})
    (page,) = roost.changes(start.cursor)
    assert {change.kind for change in page.changes} == {"usage"}
    first, second = page.changes
    assert first.request_id == second.request_id is not None
    assert {one.provider.uuid for one in page.changes if one.provider} == {host.uuid, child.uuid}
    assert all(one.root is not None and one.root.name == host.name for one in page.changes)
    assert first.resource_classes == (cpu,)
    assert abs(first.at - datetime.now(UTC)) < timedelta(hours=1)
    assert list(roost.changes(page.cursor))[-1].changes == ()


@one_server
def test_conditions_and_lengths_of_pages(roost: Roost, own: LiveProviders) -> None:
    cpu = own.custom("CPU")
    (start,) = roost.changes()
    host, other = (
        roost.create_provider(own.name(name), inventories={cpu: 8}) for name in ("one", "two")
    )
    for one in (host, other, host):
        roost.claim_on({one.name: {cpu: 1}})

    def count(**conditions: object) -> int:
        pages = roost.changes(start.cursor, **conditions)  # type: ignore[arg-type]
        return sum(len(page.changes) for page in pages)

    assert count(provider=host, kinds=["usage"]) == 2
    assert count(root=other.name, kinds=["usage", "inventory"]) == 2
    assert count(kinds=["usage"], page_limit=1) >= 3
    assert all(len(page.changes) <= 1 for page in roost.changes(start.cursor, page_limit=1))
    with pytest.raises(QuestionRefused, match="nowhere"):
        count(provider="nowhere")
    with pytest.raises(QuestionRefused, match="is no cursor"):
        list(roost.changes("nonsense"))


@one_server
def test_a_wait_ends_with_a_change(roost: Roost, own: LiveProviders) -> None:
    host = roost.create_provider(own.name("host"))
    (start,) = roost.changes()
    pages = roost.changes(start.cursor, wait=30, provider=host)
    found: list[LedgerPage] = []

    def follow() -> None:
        while not found or not found[-1].changes:
            found.append(next(pages))

    thread = Thread(target=follow)
    thread.start()
    roost.set_traits(host.name, [own.custom("GOLD")])
    thread.join()
    assert [change.kind for change in found[-1].changes] == ["traits"]


class ChangesStub(WordStub):
    """A server with one answer to all questions about changes."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply

    def answer(self, request: Received) -> Step:
        asks = request.path.startswith("/roost/changes")
        return self.reply if asks else super().answer(request)


def test_an_expired_cursor_has_an_error_of_its_own() -> None:
    error = {"status": 410, "code": "roost.cursor_expired", "detail": "pruned"}
    with (
        ChangesStub(Reply(410, body={"errors": [error]})) as stub,
        Roost(stub.url) as roost,
        pytest.raises(CursorExpired, match="pruned"),
    ):
        list(roost.changes("old"))


@pytest.mark.parametrize(
    "answer",
    [
        {"changes": [], "next": "same", "more": True},
        {"changes": [], "next": None, "more": False},
        {"changes": [UNTIMELY], "next": "x", "more": False},
    ],
    ids=["leads nowhere", "no cursor", "no time"],
)
def test_an_answer_that_is_none_is_unreadable(answer: dict[str, object]) -> None:
    with (
        ChangesStub(Reply(body=answer)) as stub,
        Roost(stub.url) as roost,
        pytest.raises(UnreadableAnswer),
    ):
        list(roost.changes("same"))


def test_a_server_that_cannot_wait_is_not_asked_without_a_pause() -> None:
    pauses: list[float] = []
    answer = {"changes": [], "next": "same", "more": False}
    with (
        ChangesStub(Reply(body=answer)) as stub,
        Roost(stub.url, sleep=pauses.append) as roost,
    ):
        pages = roost.changes("same", wait=30)
        for _ in range(3):
            next(pages)
    assert len(pauses) == 2
    assert all(pause > 0 for pause in pauses)
