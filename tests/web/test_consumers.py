"""The page Consumers in a browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from support.api_client import ApiClient
from support.browser import BrowserPage

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

CONSUMER = "11111111-1111-4111-8111-111111111111"


def claim(api: ApiClient, provider: str, **resources: int) -> None:
    """Let the consumer of these tests hold something."""
    body = {
        "allocations": {provider: {"resources": resources}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{CONSUMER}", body).status == 204


def test_a_row_says_what_each_consumer_holds_and_where(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("consumers", provider="demo-host-026", order="size")
    held = demo.get("/roost/consumers?provider=demo-host-026&order=size").json["consumers"]
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(len(held))
    expect(rows.first).to_contain_text(held[0]["consumer"][:8])
    expect(rows.first).to_contain_text(held[0]["project_id"])
    expect(rows.first.get_by_role("link", name="demo-host-026")).to_be_visible()


def test_groups_have_sums_and_stand_in_the_address(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open("consumers", type="INSTANCE")
    held = demo.get("/roost/consumers?type=INSTANCE").json["consumers"]
    page.get_by_label("group by").select_option("project")
    expect(page.locator("summary h3")).to_have_count(len({one["project_id"] for one in held}))
    shop = [one for one in held if one["project_id"] == "demo-shop"]
    processors = sum(one["resources"].get("VCPU", 0) for one in shop)
    heading = page.locator("summary h3", has_text="demo-shop")
    expect(heading).to_contain_text(f"{len(shop)} consumers")
    expect(heading).to_contain_text(f"{processors:,} VCPU")
    assert parse_qs(urlsplit(page.url).query) == {"type": ["INSTANCE"], "group": ["project"]}
    page.go_back()
    expect(page.locator("summary h3")).to_have_count(0)


def test_a_consumer_is_drawn_on_its_trees(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open("consumers", order="size")
    page.locator("tbody a").first.click()
    held = demo.get("/roost/consumers?order=size").json["consumers"][0]
    expect(page.locator(".one h1")).to_have_text(held["consumer"])
    expect(page.locator(".one .box.given")).to_have_count(len(held["allocations"]))
    page.get_by_label("Close the consumer").click()
    expect(page.locator(".one")).to_have_count(0)


def test_a_finding_is_mended_only_after_its_request_was_shown(
    demo: ApiClient, window: BrowserPage
) -> None:
    provider = demo.get("/resource_providers?name=demo-host-026_NUMA0").json["resource_providers"]
    claim(demo, provider[0]["uuid"], VCPU=1)
    page = window.open("consumers")
    known = [one["consumer"] for one in demo.get("/roost/consumers").json["consumers"]]
    page.get_by_text("Find orphans").click()
    page.get_by_label("Uuids of all consumers").fill("\n".join(set(known) - {CONSUMER}))
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="Show the request").click()
    expect(page.locator("dialog pre").first).to_have_text(f"DELETE /allocations/{CONSUMER}")
    page.get_by_role("button", name="Leave it").click()
    assert demo.get(f"/allocations/{CONSUMER}").json["allocations"]
    page.get_by_role("button", name="Show the request").click()
    page.get_by_role("button", name="Send it").click()
    expect(page.locator(".findings")).to_contain_text("finds nothing wrong")
    assert demo.get(f"/allocations/{CONSUMER}").json["allocations"] == {}


def test_a_filter_without_a_meaning_is_shown_with_its_sentence(
    demo: ApiClient, window: BrowserPage
) -> None:
    window.expected = {400}
    page = window.open("consumers", older_than="soon")
    expect(page.locator(".state")).to_contain_text("soon")
    expect(page.get_by_label("older than")).to_have_value("soon")
    page.get_by_label("older than").fill("0s")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr").first).to_be_visible()


def test_a_cloud_without_consumers_says_what_to_do(api: ApiClient, window: BrowserPage) -> None:
    window.open("consumers")
    assert "roost claim" in window.text(".list .state")
