"""`roost ui`: the pages in front of Roost, and in front of a server without `/roost/`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect

from roost.cli.ui.gateway import Gateway
from roost.client.placement import Placement
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.connecting import connect
from support.api_client import Answer, ApiClient
from support.browser import BrowserPage
from support.page_server import serving
from support.requirements import reference_environment
from support.servers.live_server import ReferenceServer
from support.transports.application import ApplicationTransport

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HOST = "11111111-1111-4111-8111-111111111111"
KEY = "the-key"
WITH_KEY = {"x-auth-token": KEY}
FOLLOWING = WITH_KEY | {"accept": "text/event-stream"}


class PlainPlacement(ApplicationTransport):
    """A server that offers the Placement API and nothing else."""

    def send(self, request: PlacementRequest) -> PlacementResponse:
        if request.path.startswith(("/roost/", "/readyz")):
            return PlacementResponse(404, {"content-type": "text/html"}, b"Not Found")
        return super().send(request)


def put_behind(window: BrowserPage, gateway: Gateway) -> None:
    """Let the gateway answer the browser."""

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        answer = gateway.answer(method, path, headers, body)
        # The browser of a test gets whole answers: of a stream, the first event.
        content = answer.body
        if answer.stream is not None:
            with closing(answer.stream):
                content = next(answer.stream)
        return Answer(answer.status, dict(answer.headers), content)

    assert window.api is not None
    window.api = replace(window.api, send=send)


@pytest.fixture
def plain(window: BrowserPage, demo: ApiClient) -> BrowserPage:
    put_behind(window, Gateway(PlainPlacement(demo), KEY))
    window.expected = {404}
    return window


def test_the_pages_work_in_front_of_roost_with_the_key_of_the_link(
    demo: ApiClient, window: BrowserPage
) -> None:
    assert demo.post("/resource_providers", {"name": "written-by-a-request"}).status == 200
    put_behind(window, Gateway(ApplicationTransport(demo), KEY))
    page = window.page
    page.goto(f"{window.base}/ui/?name=demo-host-02#key={KEY}")
    expect(page.locator(".cell")).to_have_count(10)
    page.get_by_role("link", name="Changes").click()
    expect(page.locator(".feed li").first).to_be_visible()
    page.reload()
    expect(page.locator(".feed li").first).to_be_visible()


def test_what_another_server_lacks_is_said_and_the_rest_works(plain: BrowserPage) -> None:
    page = plain.page
    page.goto(f"{plain.base}/ui/#key={KEY}")
    expect(page.locator(".missing").first).to_contain_text("does not offer /roost/overview")
    page.get_by_role("link", name="demo-host-026", exact=True).click()
    expect(page.locator('[data-name="demo-host-026_NUMA0"]')).to_contain_text("20 used · 8 free")
    expect(page.locator(".pool .edge")).to_contain_text("shares DISK_GB through")
    page.get_by_role("link", name="Consumers").click()
    expect(page.locator(".state")).to_contain_text("does not offer /roost/consumers")
    page.get_by_role("link", name="Changes").click()
    expect(page.locator(".state")).to_contain_text("does not offer /roost/changes")


def test_candidates_of_another_server_are_drawn_without_a_reason(plain: BrowserPage) -> None:
    page = plain.page
    page.goto(f"{plain.base}/ui/ask?query=resources%3DPCPU:8%26limit%3D3#key={KEY}")
    expect(page.locator(".candidates li")).to_have_count(3)
    expect(page.locator(".verdict")).to_contain_text("does not say why")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "http://elsewhere.example/traits"),
        ("GET", "//elsewhere.example/traits"),
        ("GET", "http://[/traits"),
        ("GET", "/traits/../metrics"),
        ("GET", "/roost//overview"),
        ("GET", "/metrics"),
        ("GET", "/v3/auth/tokens"),
        ("PATCH", "/traits/CUSTOM_A"),
        ("POST", "/ui/"),
    ],
)
def test_only_requests_of_the_api_are_sent_on(api: ApiClient, method: str, target: str) -> None:
    gateway = Gateway(ApplicationTransport(api), KEY)
    assert gateway.answer(method, target, WITH_KEY, b"").status == 404


def test_without_the_key_there_are_files_and_nothing_else(api: ApiClient) -> None:
    gateway = Gateway(ApplicationTransport(api), KEY)
    assert gateway.answer("GET", "/ui/", {}, b"").status == 200
    assert gateway.answer("GET", "/ui/static/main.js", {}, b"").status == 200
    for headers in ({}, {"x-auth-token": "admin"}):
        assert gateway.answer("GET", "/traits", headers, b"").status == 401
    assert KEY.encode() not in gateway.answer("GET", "/ui/", {}, b"").body


def test_a_stream_brings_changes_as_they_happen(api: ApiClient) -> None:
    with (
        serving(Gateway(ApplicationTransport(api), KEY)) as url,
        urlopen(Request(f"{url}/roost/changes", headers=FOLLOWING)) as stream,
    ):
        assert stream.readline().startswith(b"id: ")
        assert api.post("/resource_providers", {"name": "host-1"}).status == 200
        changes: list[dict[str, object]] = []
        while not changes:
            line = stream.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                changes = json.loads(line.removeprefix(b"data: "))["changes"]
    assert changes[0]["kind"] == "provider_created"


@pytest.mark.slow
def test_the_tree_of_the_reference_is_drawn(
    browser: Browser, tmp_path: Path, api: ApiClient
) -> None:
    del api
    with (
        ReferenceServer(reference_environment(), tmp_path) as reference,
        closing(connect(url=reference.url, token="admin")) as transport,
        serving(Gateway(transport, KEY)) as url,
    ):
        Placement(transport).create_provider(HOST, "host-1", None)
        window = BrowserPage(browser.new_context().new_page(), url)
        window.expected = {404}
        page = window.page
        page.goto(f"{url}/ui/#key={KEY}")
        page.get_by_role("link", name="host-1").click()
        expect(page.locator(".box h3")).to_have_text("host-1")
        assert window.problems == []
        page.context.close()
