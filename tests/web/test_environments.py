"""Every page on every environment of the seeds: it appears, and nothing goes wrong in it."""

from __future__ import annotations

import pytest

from roost.demo.drawings import drawings
from roost.demo.load import load_worlds
from roost.store.database import Database
from support.api_client import ApiClient
from support.browser import BrowserPage

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.mark.parametrize("world", [*drawings()])
def test_ask_consumers_and_changes_appear(
    database: Database, api: ApiClient, window: BrowserPage, world: str
) -> None:
    database.write(load_worlds, [drawings()[world]])
    name = next(iter(api.get("/roost/overview").json["totals"]))
    page = window.open("ask", query=f"resources={name}:1")
    page.wait_for_selector(".verdict h1")
    page.get_by_role("link", name="Consumers").click()
    page.wait_for_selector(".list .state, .list tbody tr")
    page.get_by_role("link", name="Changes").click()
    page.wait_for_selector(".feed li")
