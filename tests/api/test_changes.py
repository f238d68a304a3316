"""`GET /roost/changes`: pages, cursors, filters, waits and events, in this process.

The client has no `roost.follow`, as behind another WSGI server than `roost serve`.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from roost.api.extensions.changes import handler
from roost.model.identifiers import new_uuid
from roost.store.database import Database
from support.api_client import ApiClient, in_process_client, limited_client
from support.change_feed import (
    EVENTS,
    all_changes,
    ask,
    changes_path,
    claim,
    events_of,
    make_host,
    now,
    request_id,
    requests_of,
)
from support.store.journal import meta_restored, prune

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def test_a_page_has_what_was_written_since_a_cursor(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    written = claim(api, host)
    page = ask(api, since=since)
    named = {"uuid": host, "name": f"host {host}"}
    (change,) = page["changes"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", change["at"])
    assert change == {
        "at": change["at"],
        "kind": "usage",
        "provider": named,
        "root": named,
        "resource_classes": ["VCPU"],
        "request_id": request_id(written),
        "user_id": "admin",
        "project_id": "admin",
    }
    assert ask(api, since=page["next"])["changes"] == []
    # The same cursor gives the same page.
    assert ask(api, since=since)["changes"] == page["changes"]


def test_changes_begin_now_without_a_cursor(api: ApiClient) -> None:
    make_host(api)
    page = ask(api)
    assert page["changes"] == []
    assert set(page) == {"changes", "next", "more"}


def test_pages_have_at_most_as_many_changes_but_whole_transactions(api: ApiClient) -> None:
    hosts = [make_host(api, VCPU=8) for _ in range(3)]
    since = now(api)
    writes = [claim(api, hosts[0]), claim(api, *hosts), claim(api, hosts[1]), claim(api, hosts[2])]
    sizes, found = [], []
    more = True
    while more:
        page = ask(api, since=since, page_limit=2)
        more = page["more"]
        sizes.append(len(page["changes"]))
        found += page["changes"]
        since = page["next"]
    assert sizes == [1, 3, 2]
    assert requests_of(found) == list(map(request_id, writes))
    assert ask(api, since=since)["changes"] == []


def test_a_page_goes_on_where_the_overview_and_the_trees_end(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    for path in ("/roost/overview", "/roost/trees"):
        cursor = api.get(path).json["cursor"]
        assert ask(api, since=cursor)["changes"] == []
        written = claim(api, host)
        assert requests_of(ask(api, since=cursor)["changes"]) == [request_id(written)]


def test_the_cursor_of_an_overview_is_valid_as_the_id_of_an_event(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    cursor = api.get("/roost/overview").json["cursor"]
    written = claim(api, host)
    (event,) = events_of(api.get("/roost/changes", accept=EVENTS, last_event_id=cursor).body)
    assert requests_of(event.changes) == [request_id(written)]


def test_filters_choose_providers_trees_and_kinds(api: ApiClient) -> None:
    root = make_host(api, VCPU=8)
    child = make_host(api, root, VCPU=8)
    other = make_host(api, VCPU=8)
    since = now(api)
    ids = [request_id(claim(api, each)) for each in (root, child, other)]
    traits = {"traits": ["HW_CPU_X86_VMX"], "resource_provider_generation": 2}
    ids.append(request_id(api.put(f"/resource_providers/{root}/traits", traits)))

    def chosen(**parameters: object) -> list[int]:
        return [ids.index(one["request_id"]) for one in all_changes(api, since, **parameters)]

    assert chosen() == [0, 1, 2, 3]
    assert chosen(provider=root) == chosen(provider=f"host {root}") == [0, 3]
    assert chosen(root=root) == chosen(root=child) == [0, 1, 3]
    assert chosen(kind="traits") == [3]
    assert chosen(kind="traits,usage", root=other) == [2]
    assert chosen(kind="provider_deleted") == []
    # Pages of other changes are empty, and their cursors lead on.
    assert chosen(provider=root, page_limit=1) == [0, 3]


def test_both_trees_of_a_provider_that_moved_have_the_change(api: ApiClient) -> None:
    left, right = make_host(api), make_host(api)
    child = make_host(api, left)
    since = now(api)
    body = {"name": f"host {child}", "parent_provider_uuid": right}
    assert api.put(f"/resource_providers/{child}", body).status == 200
    for root in (left, right):
        (change,) = all_changes(api, since, root=root)
        assert (change["kind"], change["root"]["uuid"]) == ("provider_moved", right)


def test_a_deleted_provider_has_its_name_and_root_in_its_last_change(api: ApiClient) -> None:
    root = make_host(api)
    child = make_host(api, root, VCPU=8)
    since = now(api)
    assert api.delete(f"/resource_providers/{child}").status == 204
    (change,) = all_changes(api, since)
    assert change["kind"] == "provider_deleted"
    assert change["provider"] == {"uuid": child, "name": f"host {child}"}
    assert change["root"] == {"uuid": root, "name": f"host {root}"}


def test_changes_of_a_deleted_provider_are_not_those_of_the_next_with_its_id(
    api: ApiClient,
) -> None:
    # SQLite gives the id of the newest provider again, after that was deleted.
    since = now(api)
    first = make_host(api)
    assert api.delete(f"/resource_providers/{first}").status == 204
    second = make_host(api)
    told = [(one["kind"], one["provider"]["uuid"]) for one in all_changes(api, since)]
    assert told == [
        ("provider_created", first),
        ("provider_deleted", first),
        ("provider_created", second),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "eNo",
        ".",
        "..",
        "a.b.1",
        "é",
        "%00",
        "x" * 5000,
        "eNoDAAAAAAE",
        "WzFd",
        "eJyLjgUAARUAuQ",
    ],
)
def test_a_text_that_is_no_cursor_is_refused(api: ApiClient, text: str) -> None:
    answer = api.get(changes_path(since=text))
    assert answer.status == 400
    assert "is no cursor of this database" in answer.detail
    stream = api.get("/roost/changes", accept=EVENTS, last_event_id="nonsense")
    assert stream.status == 400
    assert stream.headers["content-type"] == "application/json"


def test_a_cursor_before_pruned_changes_has_expired(api: ApiClient, database: Database) -> None:
    host = make_host(api, VCPU=8)
    with meta_restored(database):
        since = now(api)
        claim(api, host)
        claim(api, host)
        half = ask(api, since=since, page_limit=1)["next"]
        prune(database)
        for cursor in (since, half):
            answer = api.get(changes_path(since=cursor))
            assert answer.status == 410
            assert answer.error["code"] == "roost.cursor_expired"
            assert "GET /roost/overview" in answer.detail
            assert api.get(changes_path(wait=5), accept=EVENTS, last_event_id=cursor).status == 410
        # What the error says to do.
        cursor = api.get("/roost/overview").json["cursor"]
        written = claim(api, host)
        assert requests_of(ask(api, since=cursor)["changes"]) == [request_id(written)]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"page_limit": 0}, "page_limit"),
        ({"page_limit": 10_001}, "page_limit"),
        ({"page_limit": "many"}, "page_limit"),
        ({"wait": -1}, "wait"),
        ({"wait": 301}, "wait"),
        ({"kind": "usages"}, "Send some of: usage"),
        ({"after": "x"}, "after"),
    ],
)
@on_sqlite
def test_odd_parameters_are_refused(api: ApiClient, parameters: dict[str, str], said: str) -> None:
    answer = api.get(changes_path(**parameters))
    assert answer.status == 400
    assert said in answer.detail


@on_sqlite
def test_filters_of_unknown_providers_are_not_found(api: ApiClient) -> None:
    for name in ("provider", "root"):
        answer = api.get(changes_path(**{name: "nowhere"}))
        assert answer.status == 404
        assert "nowhere" in answer.detail


@on_sqlite
def test_only_get_is_a_method_of_the_route(api: ApiClient) -> None:
    for method in ("HEAD", "POST", "PUT", "DELETE"):
        answer = api.request(method, "/roost/changes", headers={"accept": EVENTS})
        assert (answer.status, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("", "application/json"),
        (EVENTS, EVENTS),
        (f"{EVENTS}, application/json", "application/json"),
        (f"{EVENTS}, application/json;q=0.5", EVENTS),
        (f"{EVENTS};q=0.5, application/json", "application/json"),
        (f"{EVENTS}, */*;q=0.1", EVENTS),
    ],
)
@on_sqlite
def test_the_accept_header_chooses_pages_or_events(api: ApiClient, accept: str, given: str) -> None:
    answer = api.get("/roost/changes", accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (200, given)


@on_sqlite
def test_no_other_media_type_is_given(api: ApiClient) -> None:
    answer = api.get("/roost/changes", accept="text/html")
    assert answer.status == 406
    assert "application/json and text/event-stream are provided" in answer.detail


def test_an_event_is_a_page_with_the_cursor_as_its_id(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    written = claim(api, host)
    answer = api.get(changes_path(since=since), accept=EVENTS)
    assert answer.headers["cache-control"] == "no-store"
    (event,) = events_of(answer.body)
    assert requests_of(event.changes) == [request_id(written)]
    assert event.id == event.page["next"]
    # The id of the last event is the newer cursor, so it comes before `since`.
    (idle,) = events_of(
        api.get(changes_path(since=since), accept=EVENTS, last_event_id=event.id).body
    )
    cursors = {"cursor": idle.id, "next": idle.id}
    assert idle.page == {"kind": "progress", "changes": [], "more": False, **cursors}
    # A page has no last event.
    page = api.get(changes_path(since=since), last_event_id=event.id).json
    assert requests_of(page["changes"]) == [request_id(written)]


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread is held for a tenth of a second at most."""
    monkeypatch.setattr(handler, "HELD_SECONDS", 0.1)


@pytest.mark.usefixtures("short_waits")
def test_a_wait_without_changes_ends_with_an_empty_page(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    page = ask(api, since=since, wait=300)
    assert page["changes"] == []
    written = claim(api, host)
    for cursor in (since, page["next"]):
        assert requests_of(ask(api, since=cursor, wait=300)["changes"]) == [request_id(written)]


def test_a_wait_ends_with_a_change(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "HELD_SECONDS", 300)
    host = make_host(api, VCPU=8)
    since = now(api)
    pages = []
    waiter = threading.Thread(target=lambda: pages.append(ask(api, since=since, wait=300)))
    waiter.start()
    written = claim(api, host)
    waiter.join()
    assert requests_of(pages[0]["changes"]) == [request_id(written)]


@pytest.mark.usefixtures("short_waits")
@on_sqlite
def test_waits_hold_few_threads(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    since = now(api)
    for _ in range(handler.HELD_MAX):
        assert handler._held.acquire(blocking=False)
    monkeypatch.setattr(handler, "_held_page", lambda *_: pytest.fail("a thread was held"))
    try:
        assert ask(api, since=since, wait=300)["changes"] == []
    finally:
        for _ in range(handler.HELD_MAX):
            handler._held.release()


@pytest.mark.usefixtures("short_waits")
@on_sqlite
def test_one_follower_too_many_is_refused(database: Database, tmp_path: Path) -> None:
    api = limited_client(database, tmp_path, max_followers=0)
    answer = api.get(changes_path(since=now(api), wait=300))
    assert answer.status == 503
    assert "[roost]max_followers" in answer.detail
    # Pages hold nothing.
    assert ask(api)["changes"] == []


@on_sqlite
def test_the_policy_has_a_rule_for_changes(database: Database, tmp_path: Path) -> None:
    api = in_process_client(database, tmp_path, policy='{"roost:changes:list": "!"}')
    assert api.get("/roost/changes").status == 403


def test_names_that_come_and_go_are_changes_without_a_provider(api: ApiClient) -> None:
    since = now(api)
    suffix = new_uuid().replace("-", "").upper()
    assert api.put(f"/traits/CUSTOM_{suffix}").status == 201
    assert api.put(f"/resource_classes/CUSTOM_{suffix}").status == 201
    told = [(one["kind"], one["provider"], one["root"]) for one in all_changes(api, since)]
    assert told == [("trait_names", None, None), ("resource_classes", None, None)]
    api.delete(f"/traits/CUSTOM_{suffix}")
    api.delete(f"/resource_classes/CUSTOM_{suffix}")
