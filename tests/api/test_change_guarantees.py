"""The six guarantees of `GET /roost/changes`, for clients that follow, are killed and resume.

Each test names the mutant by which it was seen to fail.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from roost.api.application import Application
from roost.api.extensions.changes import follower, hub
from roost.store.database import Database
from roost.store.journal import changes
from roost.store.journal.changes import ChangeCursor, ReadPage
from roost.store.journal.position import Position
from roost.store.journal.writing import ChangeKind, Writer, record_changes
from roost.store.transaction import Finished, Transaction
from support.api_client import application_client, settings_for
from support.change_feed import (
    Event,
    FollowedApplication,
    ask,
    claim,
    make_host,
    now,
    request_id,
    requests_of,
)
from support.store.change_writers import SHARED, ChangeWriters
from support.store.journal import empty, meta_restored, record
from support.waiting import SECONDS_MAX, wait_until

ENOUGH = 80
LAST = "req-last"
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@dataclass
class Client:
    """A client that follows, loses its connection once in a while, and resumes elsewhere."""

    servers: Sequence[Application]
    last: str
    chance: random.Random
    events: list[Event] = field(default_factory=list)
    resumed: int = 0

    def follow(self) -> None:
        """Follow until the last change has come."""
        while not self.has_last:
            server = self.servers[self.resumed % len(self.servers)]
            stream = FollowedApplication(server, self.last, page_limit=self.chance.choice((1, 5)))
            assert stream.status == 200, stream.body
            for _ in range(self.chance.choice((1, 4, 20))):
                if has_last(stream.events):
                    break
                # A slow client falls behind what the hub keeps.
                if self.chance.random() < 0.3:
                    time.sleep(self.chance.uniform(0, 0.05))
                if not stream.pump():
                    assert stream.woken.wait(SECONDS_MAX)
            stream.close()
            self.events += stream.events
            self.last = stream.last or self.last
            self.resumed += 1

    @property
    def requests(self) -> list[str]:
        """The requests of all changes, in their order; one that is torn apart stands twice."""
        told = (one for each in self.events for one in requests_of(each.changes))
        return [one for one in told if one is not None and one != LAST]

    @property
    def has_last(self) -> bool:
        """Whether a change has come that was written after all others."""
        return has_last(self.events)


def has_last(events: Sequence[Event]) -> bool:
    return any(LAST in requests_of(each.changes) for each in events)


@dataclass
class Run:
    """What clients got of the changes of writers that commit late and roll back."""

    committed: dict[str, list[tuple[int, int]]]
    clients: list[Client]


@contextmanager
def small_pages() -> Iterator[None]:
    """Let hubs look often, read in small steps, and keep little."""
    chance = random.Random(3)

    def look(connection: Connection, position: Position) -> ReadPage | None:
        return changes.look_for_changes(connection, position) if chance.random() < 0.5 else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "LOOK_SECONDS", 0.05)
        patch.setattr(hub, "look_for_changes", look)
        patch.setattr(hub, "_PAGE_ROWS", 3)
        patch.setattr(hub, "_KEPT_BATCHES", 6)
        patch.setattr(changes, "_SCANNED_ROWS", 5)
        yield


def run_of(database: Database, directory: Path) -> Run:
    with small_pages(), meta_restored(database), closing(Database(database.options)) as second:
        empty(database)
        database.write_at_once(record, 1)
        servers = [Application(settings_for(each, directory), each) for each in (database, second)]
        since = now(application_client(servers[0]))
        clients = [Client(servers, since, random.Random(seed)) for seed in range(3)]
        with ThreadPoolExecutor(len(clients)) as threads:
            following = [threads.submit(client.follow) for client in clients]
            with ChangeWriters(database) as writers:
                wait_until(lambda: len(writers.committed) > ENOUGH)
            while not all(one.done() for one in following):
                # A client that has missed one hears of the next.
                database.write(write_last)
                time.sleep(0.1)
            for one in following:
                one.result()
    return Run(writers.committed, clients)


def write_last(transaction: Transaction) -> Finished[None]:
    """The change after which the followers end."""
    transaction.writer = Writer(LAST).text()
    record_changes(transaction, ChangeKind.TRAITS, [(0, "uuid")])
    return transaction.finish()


def assert_ordered(run: Run) -> None:
    """Changes of one provider come in the order of commits.

    Mutant: `_transactions` sorts by the first row of each transaction.
    """
    for client in run.clients:
        for provider in SHARED:
            heights = [
                height
                for request in client.requests
                for one, height in run.committed[request]
                if one == provider
            ]
            assert heights == sorted(heights)
            assert len(heights) > ENOUGH / 4


def assert_unique(run: Run) -> None:
    """No change comes twice.

    Mutant: a follower joins the hub at a place that began before the follower read.
    """
    for client in run.clients:
        assert len(client.requests) == len(set(client.requests))


def assert_reliable(run: Run) -> None:
    """No change is missed, and none comes that was rolled back.

    Mutant: a follower keeps the last page to itself that it reads before it joins the hub.
    """
    for client in run.clients:
        assert set(client.requests) == set(run.committed)


def assert_atomic(run: Run) -> None:
    """All changes of a transaction come together.

    Mutant: `_scan` takes the rows between two ids alone.
    """
    for client in run.clients:
        for each in client.events:
            for request, found in groupby(each.changes, lambda change: change["request_id"]):
                if request not in (None, LAST):
                    assert len(list(found)) == len(run.committed[request])


def assert_resumable(run: Run) -> None:
    """A client resumes at any server of the database.

    Mutant: a cursor in the middle of many changes keeps its target alone.
    """
    for client in run.clients:
        assert client.resumed > 4
        assert len(client.requests) == len(run.committed)


def test_followers_get_each_change_once_whole_and_in_order(
    database: Database, tmp_path: Path
) -> None:
    run = run_of(database, tmp_path)
    assert_ordered(run)
    assert_unique(run)
    assert_reliable(run)
    assert_atomic(run)
    assert_resumable(run)


@pytest.fixture
def application(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Application:
    """A server whose hub looks often."""
    monkeypatch.setattr(hub, "LOOK_SECONDS", 0.01)
    return Application(settings_for(database, tmp_path), database)


def test_an_idle_stream_sends_a_cursor(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bookmarkable. Mutant: `wants` does not look at the time of the next progress."""
    assert follower.PROGRESS_SECONDS <= 15
    monkeypatch.setattr(follower, "PROGRESS_SECONDS", 0.05)
    api = application_client(application)
    host = make_host(api, VCPU=8)
    stream = FollowedApplication(application, kind="provider_deleted")
    before = claim(api, host)
    # An event that the client does not want moves its bookmark.
    stream.follow_until(lambda: len(stream.events) > 3)
    stream.follow_until(lambda: ask(api, since=stream.last)["changes"] == [])
    assert all(each.page["kind"] == "progress" for each in stream.events)
    assert all(each.page["cursor"] == each.id for each in stream.events)
    after = claim(api, host)
    assert request_id(before) != request_id(after)
    assert requests_of(ask(api, since=stream.last)["changes"]) == [request_id(after)]
    stream.close()


def test_a_look_that_fails_between_two_pages_repeats_and_loses_nothing(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the next look of the hub begins at its place, not after its last batch."""
    monkeypatch.setattr(hub, "_PAGE_ROWS", 2)
    api = application_client(application)
    host = make_host(api, VCPU=20)
    stream = FollowedApplication(application)
    ids = [request_id(claim(api, host))]
    stream.follow_to(1)
    is_let_on = threading.Event()
    failed: list[ChangeCursor] = []

    def look(*_: object) -> None:
        if not is_let_on.is_set():
            raise lost()

    def read(connection: Connection, cursor: ChangeCursor, rows_max: int) -> ReadPage:
        if cursor.target is not None and len(failed) < 3:
            failed.append(cursor)
            raise lost()
        return changes.read_changes(connection, cursor, rows_max)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "look_for_changes", look)
        patch.setattr(hub, "read_changes", read)
        ids += [request_id(claim(api, host)) for _ in range(9)]
        is_let_on.set()
        stream.follow_to(len(ids))
        assert failed
    ids.append(request_id(claim(api, host)))
    stream.follow_to(len(ids))
    assert requests_of(stream.changes) == ids
    stream.close()


def test_a_follower_that_is_ahead_of_the_place_of_the_hub_gets_nothing_twice(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: a follower that falls behind takes any place, also one that began before."""
    monkeypatch.setattr(hub, "_PAGE_ROWS", 2)
    monkeypatch.setattr(hub, "_KEPT_BATCHES", 1)
    api = application_client(application)
    host = make_host(api, VCPU=20)
    stream = FollowedApplication(application)
    ids = [request_id(claim(api, host))]
    stream.follow_to(1)
    is_written, has_batch, is_behind = (threading.Event() for _ in range(3))
    pages = []

    def read(
        connection: Connection, cursor: ChangeCursor, rows_max: int, until: Position | None = None
    ) -> ReadPage:
        if until is None:
            pages.append(cursor)
            if len(pages) == 2:
                assert has_batch.wait(SECONDS_MAX)
            if len(pages) == 4:
                # The hub keeps the third page alone, and its place is before all of them.
                assert is_behind.wait(SECONDS_MAX)
        return changes.read_changes(connection, cursor, rows_max, until)

    def look(connection: Connection, position: Position) -> ReadPage | None:
        return None if is_written.is_set() else ReadPage((), ChangeCursor(position))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "look_for_changes", look)
        ids += [request_id(claim(api, host)) for _ in range(9)]
        patch.setattr(hub, "read_changes", read)
        is_written.set()
        stream.follow_to(3)
        has_batch.set()
        wait_until(lambda: len(pages) == 4)
        stream.pump_all()
        is_behind.set()
        stream.follow_to(len(ids))
    ids.append(request_id(claim(api, host)))
    stream.follow_until(lambda: requests_of(stream.changes)[-1] == ids[-1])
    assert requests_of(stream.changes) == ids
    stream.close()


def test_a_client_that_comes_between_two_looks_gets_what_it_lacks_from_the_hub(
    application: Application,
) -> None:
    """Mutant: `_kept_page` takes changes that the cursor of the client has seen."""
    api = application_client(application)
    host = make_host(api, VCPU=20)
    first = FollowedApplication(application)
    claim(api, host)
    first.follow_to(1)
    is_looking, is_let_on = threading.Event(), threading.Event()

    def look(connection: Connection, position: Position) -> ReadPage | None:
        is_looking.set()
        assert is_let_on.wait(SECONDS_MAX)
        return changes.look_for_changes(connection, position)

    def read(*_: object) -> ReadPage:
        raise AssertionError("the client reads the journal by itself")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "look_for_changes", look)
        assert is_looking.wait(SECONDS_MAX)
        claim(api, host)
        newcomer = FollowedApplication(application)
        newcomer.pump()
        lacks = request_id(claim(api, host))
        patch.setattr(hub, "read_changes", read)
        is_let_on.set()
        newcomer.follow_to(1)
    lacks_too = request_id(claim(api, host))
    for stream, count in ((first, 4), (newcomer, 2)):
        stream.follow_to(count)
        assert requests_of(stream.changes)[-2:] == [lacks, lacks_too]
        assert len(stream.changes) == count
        stream.close()


def lost() -> OperationalError:
    """What the driver says of a connection that is lost."""
    return OperationalError("SELECT", {}, OSError("the connection is lost"))


@on_sqlite
def test_a_thousand_followers_cost_one_reading_of_the_journal(
    application: Application, database: Database
) -> None:
    """Mutant: a follower that is where the hub is reads by itself."""
    api = application_client(application)
    host = make_host(api, VCPU=20)
    before = threading.active_count()
    streams = [FollowedApplication(application) for _ in range(1000)]
    written = request_id(claim(api, host))
    for stream in streams:
        stream.follow_to(1)
    # One thread reads for all.
    assert threading.active_count() <= before + 1
    with journal_statements(database) as statements:
        ids = [request_id(claim(api, host)) for _ in range(3)]
        for stream in streams:
            stream.follow_to(4)
    # A reading asks for what is new, and then for all that its rows say.
    looks = sum(text.startswith("SELECT meta.value") for text in statements)
    rows = sum(text.startswith("SELECT roost_changes.id") for text in statements)
    assert rows <= len(ids)
    assert looks + rows == len(statements)
    assert all(requests_of(stream.changes) == [written, *ids] for stream in streams)
    for stream in streams:
        stream.close()


@contextmanager
def journal_statements(database: Database) -> Iterator[list[str]]:
    """The statements that readers send to a database of SQLite about the journal."""
    statements: list[str] = []

    def note(text: str) -> None:
        if text.startswith("SELECT") and "roost_changes" in text:
            statements.append(" ".join(text.split()))

    def trace(connection: Any, _record: Any) -> None:
        connection.set_trace_callback(note)

    database.close()
    event.listen(database.reader, "connect", trace)
    try:
        yield statements
    finally:
        event.remove(database.reader, "connect", trace)
        database.close()
