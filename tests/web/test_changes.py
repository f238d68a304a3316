"""The page Changes in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.api_client import ApiClient
from support.browser import BrowserPage

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def make(api: ApiClient, name: str) -> None:
    assert api.post("/resource_providers", {"name": name}).status == 200


def test_what_was_written_before_and_what_is_written_now(
    api: ApiClient, window: BrowserPage
) -> None:
    make(api, "host-1")
    page = window.open("changes")
    expect(page.locator(".feed li").first).to_contain_text("created host-1")
    make(api, "host-2")
    expect(page.locator(".feed li").first).to_contain_text("created host-2")
    expect(page.locator(".feed li").nth(1)).to_contain_text("created host-1")


def test_the_changes_of_one_request_stand_together(demo: ApiClient, window: BrowserPage) -> None:
    tree = demo.get("/roost/trees/demo-host-026").json["providers"]
    nodes = [one for one in tree if "VCPU" in one["inventories"]]
    body = {
        "allocations": {one["uuid"]: {"resources": {"VCPU": 1}} for one in nodes},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert demo.put("/allocations/11111111-1111-4111-8111-111111111111", body).status == 204
    page = window.open("changes")
    expect(page.locator(".feed li").first).to_contain_text("2 changes")
    expect(page.locator(".feed li").first.locator("a")).to_have_count(2)


def test_a_pause_keeps_what_comes_for_later(api: ApiClient, window: BrowserPage) -> None:
    make(api, "host-1")
    page = window.open("changes")
    page.get_by_role("button", name="Pause").click()
    make(api, "host-2")
    going_on = page.get_by_role("button", name="Go on (1 new)")
    expect(going_on).to_be_visible()
    assert "host-2" not in window.text(".feed")
    going_on.click()
    expect(page.locator(".feed li").first).to_contain_text("host-2")


def test_the_slider_goes_back_with_the_keyboard_and_the_address_has_it(
    api: ApiClient, window: BrowserPage
) -> None:
    make(api, "host-1")
    page = window.open("changes")
    expect(page.locator(".feed li").first).to_contain_text("host-1")
    page.get_by_label("Until when").focus()
    page.keyboard.press("Home")
    page.wait_for_url("**/changes?until=*")
    expect(page.get_by_role("link", name="back to now")).to_be_visible()
    page.go_back()
    expect(page.locator(".filters")).to_contain_text("live")


def test_a_kind_and_a_tree_are_filters(api: ApiClient, window: BrowserPage) -> None:
    make(api, "host-1")
    make(api, "host-2")
    page = window.open("changes", root="host-1")
    expect(page.locator(".feed li")).to_have_count(1)
    page.get_by_label("what").select_option("usage")
    expect(page.locator(".state")).to_contain_text("No change of this kind")
    assert "kind=usage" in page.url


def test_a_tree_that_does_not_exist_keeps_what_was_typed(
    api: ApiClient, window: BrowserPage
) -> None:
    window.expected = {404}
    page = window.open("changes", root="nobody")
    expect(page.locator(".state")).to_contain_text("nobody")
    expect(page.get_by_label("in the tree of")).to_have_value("nobody")
