"""One browser for all tests of a process, and windows with the pages in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from roost.demo.load import load_demo
from roost.store.database import Database
from support.api_client import ApiClient
from support.browser import BrowserPage, open_browser
from support.store.setup_cache import SetupCache


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture
def window(browser: Browser, api: ApiClient) -> Iterator[BrowserPage]:
    """A window on the application of the test. Nothing may go wrong in it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    window = BrowserPage(context.new_page())
    window.api = api
    yield window
    context.close()
    assert window.problems == []


@pytest.fixture
def demo(database: Database, api: ApiClient, setup_cache: SetupCache) -> ApiClient:
    """The demo cloud: all environments of the seeds, and a hundred hosts."""
    setup_cache.once(load_demo, database)
    return api
