"""The page Ask in a browser."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from roost.demo.world import NEARLY_FITS
from support.api_client import ApiClient
from support.browser import BrowserPage

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def query(window: BrowserPage) -> str:
    """The query of the address."""
    return parse_qs(urlsplit(window.page.url).query)["query"][0]


def test_why_nothing_fits_and_what_would(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open("ask", query=NEARLY_FITS)
    explanation = demo.get(f"/roost/explain?{NEARLY_FITS}").json
    sentence = explanation["reason"]["text"]
    expect(page.locator("h1")).to_contain_text(sentence[1:])
    assert len(window.texts(".misses tr")) == len(explanation["misses"])
    hint = explanation["hints"][0]
    page.get_by_role("button", name=hint["text"]).click()
    expect(page.locator("h1")).to_contain_text("more")
    assert query(window) == hint["query"]
    assert page.locator(".candidates li").count() > 0


def test_form_and_query_string_stay_in_step(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open("ask", query="resources=VCPU:4,MEMORY_MB:8192")
    page.get_by_label("Amount of VCPU").fill("6")
    page.keyboard.press("Tab")
    expect(page.locator("#query")).to_have_value("resources=VCPU:6,MEMORY_MB:8192")
    logged = "limit=10&resources_A=PCPU%3A2&required_A=%21HW_CPU_X86_AVX"
    page.locator("#query").fill(f"GET /placement/allocation_candidates?{logged} HTTP/1.1")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Amount of PCPU")).to_have_value("2")
    assert query(window) == "limit=10&resources_A=PCPU:2&required_A=!HW_CPU_X86_AVX"
    page.go_back()
    expect(page.get_by_label("Amount of VCPU")).to_have_value("6")


def test_a_request_is_built_with_the_form_alone(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open("ask")
    page.get_by_label("Resource class").fill("VCPU")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Amount of VCPU")).to_have_value("1")
    page.get_by_role("button", name="+ group").click()
    page.locator("fieldset[data-group='_1']").get_by_label("Resource class").fill("PGPU")
    page.keyboard.press("Tab")
    expect(page.locator("#query")).to_have_value("resources=VCPU:1&resources_1=PGPU:1")
    expect(page.locator("h1")).to_contain_text("more of this request fit")
    expect(page.locator(".candidates li").first.locator(".tag.group").first).to_be_visible()


def test_why_not_this_host(demo: ApiClient, window: BrowserPage) -> None:
    page = window.open("ask", query="resources=PCPU:24&required=HW_CPU_X86_AVX512F")
    page.get_by_label("Why not this host?").fill("demo-host-031")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Not on demo-host-031")


def test_what_if_shows_before_and_after_and_writes_nothing(
    demo: ApiClient, window: BrowserPage
) -> None:
    asked = "resources=PCPU:8"
    before = demo.get(f"/roost/capacity?{asked}").json["fits"]
    page = window.open("ask", query=asked)
    page.get_by_label("Provider to change").fill("demo-host-000")
    page.get_by_role("button", name="try").click()
    figures = page.locator(".before-after .figure strong")
    expect(figures.first).to_have_text(f"{before:,}")
    after = int(figures.nth(1).inner_text().replace(",", ""))
    assert after < before
    page.get_by_label("Change", exact=True).select_option("add")
    page.get_by_label("Provider to change").fill("demo-host-010")
    page.get_by_role("button", name="try").click()
    expect(page.locator(".changes li")).to_have_count(2)
    expect(figures.nth(1)).not_to_have_text(f"{after:,}")
    assert demo.get(f"/roost/capacity?{asked}").json["fits"] == before


def test_a_refused_request_keeps_what_was_typed(demo: ApiClient, window: BrowserPage) -> None:
    window.expected = {400}
    page = window.open("ask")
    page.locator("#query").fill("resources=NO_SUCH_CLASS:1")
    page.keyboard.press("Enter")
    expect(page.locator(".answer .state")).to_contain_text("NO_SUCH_CLASS")
    expect(page.get_by_label("Amount of NO_SUCH_CLASS")).to_have_value("1")


@pytest.mark.parametrize("way", ["paste", "button"])
def test_a_pasted_query_is_asked_at_once_and_a_typed_one_with_the_button(
    demo: ApiClient, window: BrowserPage, way: str
) -> None:
    page = window.open("ask")
    text = page.get_by_label("Query string")
    text.fill("resources=VCPU:1")
    if way == "paste":
        text.dispatch_event("paste")
    else:
        page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("h1")).to_contain_text("more of this request fit")
    expect(page).to_have_url(re.compile("query=resources"))
