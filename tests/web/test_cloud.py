"""The page Cloud in a browser."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from roost.demo.drawings import drawings
from roost.demo.load import load_worlds
from roost.store.database import Database
from support.api_client import ApiClient
from support.browser import BrowserPage

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def asked(window: BrowserPage) -> dict[str, list[str]]:
    """The parameters of the address."""
    return parse_qs(urlsplit(window.page.url).query)


def test_all_roots_and_four_numbers_apart(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open()
    overview = demo.get("/roost/overview?resource_class=VCPU").json
    with_class = [row for row in overview["rows"] if row[2]]
    expect(page.locator(".cell")).to_have_count(len(with_class))
    figures = dict(zip(window.texts(".figure span"), window.texts(".figure strong"), strict=True))
    totals = overview["totals"]["VCPU"]
    assert figures["roots"] == str(len(with_class))
    assert figures["VCPU in all"] == f"{totals['total']:,}"
    assert figures["usable"] == f"{totals['capacity']:,}"
    assert figures["used"] == f"{totals['used']:,}"
    assert figures["free"] == f"{totals['free']:,}"
    assert figures["reserved"] == f"{totals['reserved']:,}"


def test_a_filter_changes_the_address_and_back_takes_it_back(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open()
    before = window.text(".figure strong")
    page.get_by_label("class").select_option("PGPU")
    expect(page.locator(".figure").nth(1)).to_contain_text("PGPU in all")
    assert asked(window)["class"] == ["PGPU"]
    page.get_by_label("Filter by name").fill("demo-host-00")
    expect(page.locator(".figure strong").first).not_to_have_text(before)
    page.wait_for_url(re.compile("name=demo-host-00"))
    page.go_back()
    expect(page.locator(".figure strong").first).to_have_text(before)
    assert "class" not in asked(window)


def test_with_a_request_each_cell_has_the_number_that_still_fits(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open(fits="resources=PCPU:8,MEMORY_MB:16384", group="aggregate", full="fits")
    capacity = demo.get("/roost/capacity?resources=PCPU:8,MEMORY_MB:16384&by=root").json
    expect(page.locator(".cell")).to_have_count(len(capacity["roots"]))
    fits = {entry["root"]["uuid"]: entry["fits"] for entry in capacity["roots"]}
    for cell in page.locator(".cell").all()[:10]:
        uuid = cell.get_attribute("data-uuid")
        assert cell.locator(".cell-number").inner_text() == str(fits[uuid or ""])
    assert all("more fit" in text for text in window.texts(".group-head"))


def test_groups_in_two_levels_have_totals(demo: ApiClient, window: BrowserPage) -> None:
    window.open(group="name", then="aggregate", name="demo-host")
    assert window.texts("h2.group-head")[0].startswith("demo-host- 100 roots")
    inner = window.texts("h3.group-head")
    assert len(inner) == 4
    assert all("25 roots" in text for text in inner)


def test_a_click_opens_the_tree_beside_the_grid(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open(name="demo-host-026")
    page.locator(".cell").click()
    expect(page.locator(".panel .box").first).to_contain_text("NUMA0")
    assert "root" in asked(window)
    page.get_by_label("Close the tree").click()
    expect(page.locator(".panel")).to_be_hidden()


def test_the_keyboard_moves_between_cells_and_opens_one(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open(name="demo-host-0")
    page.locator(".cell").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("demo-host-0")
    expect(page.locator("#tip")).to_have_text(focused)
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_be_visible()
    page.locator(".panel a").first.focus()
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_be_hidden()


def test_a_cloud_without_providers_says_what_to_do(api: ApiClient, window: BrowserPage) -> None:
    window.open()
    assert "roost agent --driver linux --once" in window.text(".state")


def test_a_filter_that_leaves_nothing_can_be_taken_away(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open(name="nothing-has-this-name")
    page.get_by_role("button", name="Show all roots").click()
    page.wait_for_selector(".cell")
    assert "name" not in asked(window)


def test_a_request_that_the_server_refuses_is_shown_with_its_sentence(
    demo: ApiClient, window: BrowserPage
) -> None:
    window.expected = {400}
    page = window.page
    page.goto(f"{window.base}/ui/?fits=resources%3DNONE%3A1")
    expect(page.locator(".state")).to_contain_text("NONE")
    assert page.get_by_label("Request").input_value() == "resources=NONE:1"


@pytest.mark.parametrize("world", [*drawings()])
def test_every_environment_of_the_seeds_has_all_its_roots(
    database: Database, api: ApiClient, window: BrowserPage, world: str
) -> None:
    database.write(load_worlds, [drawings()[world]])
    # Without a class all roots appear: a request of what every tree may have.
    overview = api.get("/roost/overview").json
    name = next(iter(overview["totals"]))
    page = window.open(fits=f"resources={name}:1")
    expect(page.locator(".cell")).to_have_count(overview["roots"])


def test_the_fullest_host_for_a_class_comes_first(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open(**{"class": "PGPU"})
    page.locator("select[name=order]").select_option("used")
    overview = demo.get("/roost/overview?resource_class=PGPU").json
    rows = [dict(zip(overview["columns"], row, strict=True)) for row in overview["rows"]]
    shares = {row["uuid"]: row["used"] / row["total"] for row in rows if row["total"]}
    cells = page.locator(".cell")
    expect(cells.first).to_have_attribute("data-uuid", max(shares, key=lambda one: shares[one]))
    shown = [shares[cell.get_attribute("data-uuid") or ""] for cell in cells.all()]
    assert shown == sorted(shown, reverse=True)


def test_beginnings_of_traits_of_roots_are_offered_as_groups(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open(name="demo-host")
    page.get_by_label("group by").focus()
    offered = page.get_by_label("group by").locator("option", has_text="trait STORAGE_DISK_")
    expect(offered).to_have_count(1)
    page.get_by_label("group by").select_option("trait:STORAGE_DISK_")
    expect(page.locator("h2.group-head").first).to_contain_text("STORAGE_DISK_")
