"""The page Tree in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from roost.demo.drawings import drawings
from roost.demo.load import load_worlds
from roost.store.database import Database
from support.api_client import ApiClient
from support.browser import BrowserPage

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

CONSUMER = "11111111-1111-4111-8111-111111111111"


def test_boxes_stand_in_boxes_with_the_amounts_in_words(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("tree", provider="demo-host-026")
    node = page.locator(
        '.box[data-name="demo-host-026"] > .inner > [data-name="demo-host-026_NUMA0"]'
    )
    expect(node).to_contain_text("20 used · 8 free")
    expect(node.locator('[data-name="demo-host-026_0000:1f:00.0"]')).to_contain_text(
        "4 used · 12 free"
    )


def test_a_pool_stands_beside_with_the_words_of_its_edge_and_a_line(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("tree", provider="demo-host-026")
    expect(page.locator(".pool .edge")).to_contain_text("shares DISK_GB through")
    expect(page.locator("svg.edges path")).to_have_count(1)


def test_a_claim_of_another_client_is_seen_and_its_box_is_marked(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("tree", provider="demo-host-026")
    nic = page.locator('[data-name="demo-host-026_0000:17:00.0"]')
    expect(nic).to_contain_text("0 used · 16 free")
    uuid = nic.get_attribute("data-uuid")
    claim = {
        "allocations": {uuid: {"resources": {"SRIOV_NET_VF": 3}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert demo.put(f"/allocations/{CONSUMER}", claim).status == 204
    expect(nic).to_contain_text("3 used · 13 free")
    assert "changed" in (nic.get_attribute("class") or "")
    expect(page.locator("footer .note")).to_contain_text("demo-host-026_0000:17:00.0")


def test_consumers_appear_on_demand_in_the_boxes_that_give(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("tree", provider="demo-host-026")
    assert page.locator(".consumers").count() == 0
    page.get_by_label("consumers").check()
    held = demo.get("/roost/consumers?provider=demo-host-026").json["consumers"]
    lines = sum(len(each["allocations"]) for each in held)
    expect(page.locator(".consumers li")).to_have_count(lines)
    page.go_back()
    expect(page.locator(".consumers")).to_have_count(0)


def test_a_device_has_a_name_for_people(api: ApiClient, window: BrowserPage) -> None:
    assert api.put("/traits/CUSTOM_PCI_10DE_20B0").status == 201
    made = api.post("/resource_providers", {"name": "gpu-1"}).json
    path = f"/resource_providers/{made['uuid']}/traits"
    body = {"resource_provider_generation": 0, "traits": ["CUSTOM_PCI_10DE_20B0"]}
    assert api.put(path, body).status == 200
    window.open("tree", provider="gpu-1")
    assert "NVIDIA A100 SXM4 40GB" in window.text(".box")


def test_an_unknown_name_keeps_what_was_typed_and_says_what_to_do(
    demo: ApiClient, window: BrowserPage
) -> None:
    window.expected = {404}
    page = window.page
    page.goto(f"{window.base}/ui/tree?provider=demo-host-999")
    expect(page.locator(".state")).to_contain_text("No provider is called demo-host-999")
    assert page.get_by_label("Host").input_value() == "demo-host-999"


@pytest.mark.parametrize("world", [*drawings()])
def test_every_environment_of_the_seeds_is_drawn_whole(
    database: Database, api: ApiClient, window: BrowserPage, world: str
) -> None:
    drawn = drawings()[world]
    database.write(load_worlds, [drawn])
    for root in (spec for spec in drawn.providers if spec.parent is None):
        tree = api.get(f"/roost/trees/{drawn.uuid(root.name)}").json
        page = window.open("tree", provider=drawn.uuid(root.name))
        expect(page.locator(".tree-boxes .box")).to_have_count(len(tree["providers"]))
        expect(page.locator(".pool")).to_have_count(len(tree["sharing_providers"]))


def test_the_box_of_the_provider_that_was_looked_for_is_outlined(
    demo: ApiClient, window: BrowserPage
) -> None:
    page = window.open("tree", provider="demo-host-026_0000:1f:00.0")
    sought = page.locator(".sought")
    expect(sought).to_have_attribute("data-name", "demo-host-026_0000:1f:00.0")
    expect(sought).to_be_in_viewport()
    sought.get_by_role("link", name="4 used").click()
    held = demo.get("/roost/consumers?provider=demo-host-026_0000:1f:00.0").json["consumers"]
    expect(page.locator("tbody tr")).to_have_count(len(held))
