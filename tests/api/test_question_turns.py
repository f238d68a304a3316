"""Questions under `/roost/` take turns: large work only in line, and never with a connection."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from roost import turns
from roost.api.extensions.questions import resilience
from roost.api.http.microversions import MAX_VERSION
from roost.api.openapi.examples import body_example
from roost.api.routes import ROUTES
from roost.replica.replica import Replica
from roost.search.forest.forest import Forest
from roost.search.forest.rows import AllocationRows
from roost.search.resilience.resilience import Resilience, find_resilience
from roost.store import tables
from roost.store.database import Database
from roost.store.journal.position import Position
from roost.turns import TURNS, SearchTooLong
from support.api_client import Answer, ApiClient, in_process_client
from support.store.bulk_rows import numbered_uuid, write_providers, write_rows
from support.store.read_watch import watched_reads
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

ROOTS = 2000
# A question may read its own names, as that of a provider, before its turn.
STATEMENTS_MAX = 3
# A page of the journal has few rows. It also says where the journal begins and ends.
STATEMENTS_OF_A_PAGE = {"/roost/changes/past": 6}
# A page of the journal has the names that the forest has.
WITH_NAMES = {"/roost/changes", "/roost/changes/past"}
RESILIENCE = "/roost/resilience?page_limit=10000"

WHATIF = {
    "changes": [{"drain": numbered_uuid(number)} for number in range(100)],
    "ask": [{"explain": "resources=VCPU:9"}, {"candidates": "resources=VCPU:1&limit=10"}],
}
# A large question to each route that searches.
SEARCHES: dict[str, Callable[[ApiClient], Answer]] = {
    "/roost/resilience": lambda api: api.get(RESILIENCE),
    "/roost/explain": lambda api: api.get("/roost/explain?resources=VCPU:9&misses=100"),
    "/roost/capacity": lambda api: api.get(
        "/roost/capacity?resources=VCPU:1&by=root&page_limit=10000"
    ),
    "/roost/fragmentation": lambda api: api.get("/roost/fragmentation?ask=resources%3DVCPU:1"),
    "/roost/overview": lambda api: api.get(
        "/roost/overview?resource_class=VCPU&fits=resources%3DVCPU:1&page_limit=10000"
    ),
    "/roost/exporter": lambda api: api.get("/roost/exporter"),
    "/roost/whatif": lambda api: api.post("/roost/whatif", WHATIF),
    "/roost/candidates": lambda api: api.get("/roost/candidates?resources=VCPU:1"),
    "/roost/consumers": lambda api: api.get("/roost/consumers?page_limit=10000"),
    "/roost/trees": lambda api: api.get("/roost/trees?page_limit=1000"),
    "/roost/audit": lambda api: api.post("/roost/audit", {"known_consumers": []}),
}
# The routes of ours that search, or that only read, by path; not those about one thing.
OURS = {
    route.path: route
    for route in ROUTES
    if route.path.startswith("/roost/") and (not route.writes or route.path in SEARCHES)
    if "{" not in route.path
}
# These search nothing.
WITHOUT_TURN = [
    path
    for path, route in OURS.items()
    if route.tag not in ("Questions", "Consumers") and path not in SEARCHES
]
each_question = pytest.mark.parametrize("path", [*SEARCHES, *WITHOUT_TURN])


def ask(api: ApiClient, path: str) -> Answer:
    """The answer to the large question, or to the example of a route that searches nothing."""
    if path in SEARCHES:
        return SEARCHES[path](api)
    body = OURS[path].body
    return api.request(OURS[path].method, path, body and body_example(body, MAX_VERSION))


def provider_ids(connection: Connection) -> list[int]:
    id_ = tables.resource_providers.c.id
    return list(connection.execute(select(id_).order_by(id_)).scalars())


def write_cloud(connection: Connection, roots: int = ROOTS) -> None:
    """Write roots with 8 VCPU, of which a consumer holds 7."""
    write_providers(connection, range(roots), total=8)
    for owners in (tables.projects, tables.users):
        write_rows(connection, owners, [{"id": 1, "external_id": "lab"}])
    write_rows(
        connection,
        tables.consumers,
        (
            {"uuid": numbered_uuid(10_000 + id_), "project_id": 1, "user_id": 1}
            for id_ in provider_ids(connection)
        ),
    )
    write_rows(
        connection,
        tables.allocations,
        (
            {
                "resource_provider_id": id_,
                "consumer_id": numbered_uuid(10_000 + id_),
                "resource_class_id": 0,
                "used": 7,
            }
            for id_ in provider_ids(connection)
        ),
    )


def write_consumer(connection: Connection) -> None:
    """Give one more consumer the last VCPU of the first root."""
    row = {
        "resource_provider_id": provider_ids(connection)[0],
        "consumer_id": numbered_uuid(1),
        "resource_class_id": 0,
        "used": 1,
    }
    write_rows(connection, tables.allocations, [row])


def test_every_route_that_searches_has_a_large_question(kind: str) -> None:
    assert set(OURS) - set(WITHOUT_TURN) == set(SEARCHES)


@each_question
def test_no_route_reads_much_outside_of_its_turn(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    # No search enters the line because of its time, so only known sizes count.
    monkeypatch.setattr(turns, "_FREE_SECONDS", inf)
    database.write_at_once(write_cloud)
    api = in_process_client(database, tmp_path)
    with watched_reads(database) as watch:
        answer = ask(api, path)
    assert answer.status == 200, answer.body
    most = STATEMENTS_OF_A_PAGE.get(path, STATEMENTS_MAX)
    assert len(watch.outside) <= most, watch.outside


@each_question
def test_no_route_waits_or_works_in_its_turn_with_a_shared_connection(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    # Every search is large at once, and looks at the line at every pause.
    for bound in ("_FREE_SECONDS", "_SLICE_SECONDS", "_LOOK_SECONDS"):
        monkeypatch.setattr(turns, bound, 0)
    database.write_at_once(write_cloud, 300)
    api = in_process_client(database, tmp_path)
    with watched_reads(database) as watch:
        answer = ask(api, path)
    assert answer.status == 200, answer.body
    assert bool(watch.paused) == (path not in WITHOUT_TURN)
    assert watch.held_in_turn == 0


@each_question
def test_no_route_waits_for_the_forest_in_its_turn(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """While all providers are read, that takes long."""
    database.write_at_once(write_cloud, 300)
    free: list[int] = []
    current = Replica.current_with_position

    def noting(replica: Replica, *arguments: Any) -> tuple[Forest, Position]:
        free.append(TURNS.working._free)
        return current(replica, *arguments)

    api = in_process_client(database, tmp_path)
    monkeypatch.setattr(Replica, "current_with_position", noting)
    answer = ask(api, path)
    assert answer.status == 200, answer.body
    assert bool(free) == (path not in WITHOUT_TURN or path in WITH_NAMES)
    assert set(free) <= {turns._WORKING_MAX}


@contextmanager
def full_line() -> Iterator[None]:
    """Let other searches work, as many as may work at once."""
    for _ in range(turns._WORKING_MAX):
        TURNS.working.enter()
    try:
        yield
    finally:
        for _ in range(turns._WORKING_MAX):
            TURNS.working.leave()


class HeldSearches:
    """The searches for the resilience, each of which stands still until the test lets it go on."""

    def __init__(self) -> None:
        self.rows: list[AllocationRows] = []
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)

    def find(self, forest: Forest, rows: AllocationRows, pause: Callable[[], None]) -> Resilience:
        self.rows.append(rows)
        self.begun.release()
        assert self.go_on.acquire(timeout=SECONDS_MAX)
        return find_resilience(forest, rows, pause)


def consumers(answer: Answer) -> int:
    """How many consumers hold something from the first root."""
    assert answer.status == 200, answer.body
    (root,) = [root for root in answer.json["roots"] if root["root"]["uuid"] == numbered_uuid(0)]
    count: int = root["consumers"]
    return count


def test_resilience_waits_for_its_turn_before_it_reads(database: Database, tmp_path: Path) -> None:
    database.write_at_once(write_cloud, 20)
    api = in_process_client(database, tmp_path)
    with watched_reads(database) as watch, ThreadPoolExecutor(1) as pool:
        with full_line():
            asked = pool.submit(api.get, RESILIENCE)
            # The request waits for its round, for very large searches, and for its turn.
            wait_until(lambda: watch.paused == 3 or asked.done())
            assert (watch.outside, watch.inside, asked.done()) == ([], [], False)
        assert consumers(asked.result(SECONDS_MAX)) == 1
    assert any("FROM allocations" in statement for statement in watch.inside)


def test_requests_that_wait_share_a_snapshot_that_begins_after_they_came(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.write_at_once(write_cloud, 20)
    searches = HeldSearches()
    monkeypatch.setattr(resilience, "find_resilience", searches.find)
    api = in_process_client(database, tmp_path)
    with watched_reads(database) as watch, ThreadPoolExecutor(5) as pool:
        first = pool.submit(api.get, RESILIENCE)
        assert searches.begun.acquire(timeout=SECONDS_MAX)
        database.write_at_once(write_consumer)
        waits = watch.paused
        later = [pool.submit(api.get, RESILIENCE) for _ in range(4)]
        wait_until(lambda: watch.paused >= waits + len(later))
        assert len(searches.rows) == 1
        searches.go_on.release(2)
        answers = [asked.result(SECONDS_MAX) for asked in later]
    assert consumers(first.result(SECONDS_MAX)) == 1
    assert [consumers(answer) for answer in answers] == [2] * len(later)
    assert len(searches.rows) == 2


def fail_too_long(*_arguments: Any) -> Resilience:
    raise SearchTooLong("more than 10 seconds of work")


@pytest.mark.parametrize(("work", "status"), [(find_resilience, 200), (fail_too_long, 503)])
def test_resilience_gives_the_memory_of_its_data_back(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[..., Resilience],
    status: int,
) -> None:
    data: list[weakref.ref[Any]] = []
    was_freed: list[bool] = []

    def find(forest: Forest, rows: AllocationRows, pause: Callable[[], None]) -> Resilience:
        data.append(weakref.ref(rows.consumers))
        return work(forest, rows, pause)

    monkeypatch.setattr(resilience, "find_resilience", find)
    monkeypatch.setattr(resilience, "give_back_memory", lambda: was_freed.append(data[0]() is None))
    database.write_at_once(write_cloud, 20)
    assert in_process_client(database, tmp_path).get(RESILIENCE).status == status
    assert was_freed == [True]
