"""What all pages have around them, and what no page may do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from roost.demo.world import NEARLY_FITS
from roost.store.database import Database
from support.api_client import Answer, ApiClient, in_process_client
from support.browser import BrowserPage, need_axe
from support.servers.live_server import LiveServer

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOSTILE = """<script>window.hacked=1</script><img src=x onerror="window.hacked=1">"'&"""
PAGES = {
    "cloud": ("", {"fits": "resources=PCPU:8", "group": "aggregate"}),
    "panel": ("", {"root": "demo-host-026"}),
    "tree": ("tree", {"provider": "demo-host-026", "consumers": "yes"}),
    "no tree": ("tree", {}),
    "consumers": ("consumers", {"group": "project"}),
    "changes": ("changes", {}),
    "nothing fits": ("ask", {"query": NEARLY_FITS}),
    "fits": ("ask", {"query": "resources=VCPU:4,DISK_GB:10", "change": "drain demo-host-000"}),
}


@pytest.mark.parametrize("name", [*PAGES])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_violation_of_accessibility(
    demo: ApiClient, window: BrowserPage, name: str, theme: str
) -> None:
    need_axe()
    path, parameters = PAGES[name]
    assert demo.post("/resource_providers", {"name": "written-by-a-request"}).status == 200
    window.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    window.open(path, **parameters)
    window.page.wait_for_selector(".cell, .box, h1, .names, tbody, .feed")
    assert window.violations() == []


def test_hostile_names_are_names(api: ApiClient, window: BrowserPage) -> None:
    made = api.post("/resource_providers", {"name": HOSTILE}).json
    inventory = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    assert api.put(f"/resource_providers/{made['uuid']}/inventories", inventory).status == 200
    page = window.open()
    expect(page.locator(".cell")).to_have_count(1)
    page.locator(".cell").click()
    expect(page.locator(".panel h3")).to_have_text(HOSTILE)
    window.open("tree", provider=HOSTILE)
    assert window.text(".box h3") == HOSTILE
    claim = {
        "allocations": {made["uuid"]: {"resources": {"VCPU": 1}}},
        "project_id": HOSTILE,
        "user_id": HOSTILE,
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put("/allocations/11111111-1111-4111-8111-111111111111", claim).status == 204
    page = window.open("consumers", group="project")
    expect(page.locator("summary h3")).to_contain_text(HOSTILE)
    page.locator("tbody a").first.click()
    expect(page.locator(".one .box h3")).to_have_text(HOSTILE)
    page = window.open("changes")
    expect(page.locator(".feed a").first).to_have_text(HOSTILE)
    page = window.open("ask", query="resources=VCPU:1", provider=HOSTILE, change=f"drain {HOSTILE}")
    expect(page.locator("h1")).to_contain_text(HOSTILE)
    page.get_by_role("combobox", name="Find").fill("script")
    expect(page.locator("#search-found li")).to_contain_text(HOSTILE)
    assert page.evaluate("window.hacked") is None


def test_the_search_box_finds_names_uuids_and_traits_with_the_keyboard_alone(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open()
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type("demo-host-026")
    expect(page.locator("#search-found li").first).to_contain_text("demo-host-026")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".box h3").first).to_have_text("demo-host-026")
    held = demo.get("/roost/consumers?provider=demo-host-026").json["consumers"][0]["consumer"]
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type(held)
    page.keyboard.press("Enter")
    expect(page.locator(".one h1")).to_have_text(held)


def test_the_foot_has_the_same_as_json_command_and_curl(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("ask", query="resources=VCPU:4")
    address = page.locator("footer a").get_attribute("href") or ""
    assert demo.get(address.removeprefix(window.base)).json["feasible"]
    commands = window.texts("footer code")
    assert commands[0].startswith("roost explain --from-query resources=VCPU:4")
    assert commands[1].startswith("curl -H")
    page.get_by_label("Copy the command", exact=True).click()
    expect(page.locator("footer .copy", has_text="copied")).to_have_count(1)


def test_a_token_is_typed_once_and_kept_in_memory_only(
    browser: Browser, database: Database, tmp_path: Path
) -> None:
    api = in_process_client(database, tmp_path)
    window = BrowserPage(browser.new_context().new_page())
    window.api = ApiClient(lambda *sent: _with_token(api, *sent))
    page = window.page
    page.goto(f"{window.base}/ui/")
    page.get_by_role("textbox", name="Token").fill("admin")
    page.keyboard.press("Enter")
    expect(page.locator(".state")).to_contain_text("No providers yet")
    page.get_by_role("link", name="Tree").click()
    expect(page.locator("nav [aria-current]")).to_have_text("Tree")
    expect(page.locator(".state")).to_contain_text("No providers yet")
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert "admin" not in kept
    page.reload()
    expect(page.get_by_role("textbox", name="Token")).to_be_visible()
    assert window.problems == []
    page.context.close()


def _with_token(
    api: ApiClient, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> Answer:
    """The answer of a server that wants a token, as far as its pages know."""
    answer = api.send(method, path, body, headers)
    text = answer.body.replace(b'content="admin"', b'content=""')
    return Answer(answer.status, answer.headers, text)


def test_the_pages_of_a_live_server_work_below_a_prefix(
    browser: Browser, tmp_path: Path, database_url: str
) -> None:
    options = ("--demo", "--prefix", "/placement")
    with LiveServer(database_url, tmp_path, workers=1, options=options) as server:
        assert f"The pages: {server.url}/placement/ui/" in server.log
        window = BrowserPage(browser.new_context().new_page(), f"{server.url}/placement")
        page = window.open(name="demo-host-026")
        page.locator(".cell").click()
        expect(page.locator(".panel .box").first).to_contain_text("NUMA0")
        page.get_by_role("link", name="Ask").click()
        page.get_by_role("link", name="4 VCPU and 8 GB").click()
        expect(page.locator("h1")).to_contain_text("more of this request fit")
        expect(page.locator("#health")).to_contain_text("ready")
        _see_a_claim(window, server.client())
        assert window.problems == []
        page.context.close()


def _see_a_claim(window: BrowserPage, other: ApiClient) -> None:
    """Another client claims something: the stream tells the page, which asks nothing meanwhile."""
    page = window.open("tree", provider="demo-host-026_0000:17:00.0")
    device = page.locator(".sought")
    expect(device).to_contain_text("0 used · 16 free")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_request("**/roost/changes?**"):
        page.reload()
    expect(device).to_contain_text("0 used · 16 free")
    asked.clear()
    claim = {
        "allocations": {device.get_attribute("data-uuid"): {"resources": {"SRIOV_NET_VF": 3}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    path = "/placement/allocations/11111111-1111-4111-8111-111111111111"
    assert other.put(path, claim).status == 204
    expect(device).to_contain_text("3 used · 13 free")
    assert "changed" in (device.get_attribute("class") or "")
    assert [url for url in asked if "/roost/changes" in url] == []


def test_every_page_is_reached_and_used_with_the_keyboard_alone(
    demo: ApiClient, window: BrowserPage
) -> None:
    assert demo.post("/resource_providers", {"name": "written-by-a-request"}).status == 200
    page = window.open()

    def press_tab_until(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.locator(f"{selector}:focus").count() == 1:
                return
        raise AssertionError(f"Tab does not reach {selector}")

    press_tab_until('nav a[href="./consumers"]')
    page.keyboard.press("Enter")
    page.wait_for_selector("tbody tr")
    press_tab_until("tbody a")
    page.keyboard.press("Enter")
    expect(page.locator(".one h1")).to_be_visible()
    page.locator("body").focus()
    page.keyboard.press("/")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".feed li").first).to_be_visible()
    press_tab_until(".filters button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
