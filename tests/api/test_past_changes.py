"""`GET /roost/changes/past`: the journal backwards."""

from __future__ import annotations

from support.api_client import ApiClient

PATH = "/roost/changes/past"


def make(api: ApiClient, *names: str) -> None:
    for name in names:
        assert api.post("/resource_providers", {"name": name}).status == 200


def names(changes: list[dict[str, object]]) -> list[object]:
    return [change["provider"]["name"] for change in changes]  # type: ignore[index]  # JSON


def test_the_newest_change_comes_first_and_pages_go_back(api: ApiClient) -> None:
    make(api, "p1", "p2", "p3")
    page = api.get(f"{PATH}?page_limit=2").json
    assert names(page["changes"]) == ["p3", "p2"]
    assert {change["kind"] for change in page["changes"]} == {"provider_created"}
    older = api.get(f"{PATH}?page_limit=2&marker={page['older']}").json
    assert names(older["changes"])[0] == "p1"
    assert page["oldest_at"] <= page["changes"][0]["at"] <= page["newest_at"]


def test_later_changes_follow_from_the_cursor_without_a_gap(api: ApiClient) -> None:
    make(api, "p1")
    cursor = api.get(PATH).json["next"]
    make(api, "p2")
    assert names(api.get(f"/roost/changes?since={cursor}").json["changes"]) == ["p2"]


def test_until_leaves_out_what_was_written_later(api: ApiClient) -> None:
    make(api, "p1")
    assert names(api.get(f"{PATH}?until=2999-01-01T00:00:00Z").json["changes"])[0] == "p1"
    assert names(api.get(f"{PATH}?until=2999-01-01T00:00:00%2B02:00").json["changes"])[0] == "p1"
    assert api.get(f"{PATH}?until=2001-01-01T00:00:00").json["changes"] == []


def test_only_the_changes_of_one_tree(api: ApiClient) -> None:
    make(api, "p1", "p2")
    assert names(api.get(f"{PATH}?root=p1").json["changes"]) == ["p1"]


def test_what_the_route_does_not_take(api: ApiClient) -> None:
    assert api.get(f"{PATH}?until=soon").status == 400
    assert api.get(f"{PATH}?marker=x").status == 400
    assert api.get(f"{PATH}?page_limit=0").status == 400
    assert api.get(f"{PATH}?since=x").status == 400
    assert api.get(f"{PATH}?root=nobody").status == 404
