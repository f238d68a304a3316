"""The page Ask has each numbered list of the seed documents.

The tests in `tests/seeds/` have the lists. Here the same tests ask the page.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from seeds.test_any_traits import *  # noqa: F403  # the tests themselves
from seeds.test_provider_trees import *  # noqa: F403  # the tests themselves
from seeds.test_provider_trees_first_edition import *  # noqa: F403  # the tests themselves
from seeds.test_shared_by_children import *  # noqa: F403  # the tests themselves
from support.api_client import ApiClient
from support.browser import BrowserPage
from support.worlds.seed_world import LATEST, SeedWorld

# The imported modules have marks of their own for this. Each test runs once here.
pytestmark: list[pytest.MarkDecorator] = []  # type: ignore[no-redef]  # replaces the imported marks


@pytest.fixture(params=["sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    """The page is the same on every database."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def asking(browser: Browser) -> Iterator[BrowserPage]:
    """One window for all lists: only the application behind it changes."""
    context = browser.new_context()
    yield BrowserPage(context.new_page())
    context.close()


@pytest.fixture(autouse=True)
def _ask_the_page(
    asking: BrowserPage, api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    asking.api = api
    asking.open("ask")

    def check(
        seed: SeedWorld, request: str, listed: str, *, trees: str, since: str, until: str = LATEST
    ) -> None:
        del trees, since
        if until == LATEST:
            query = seed.query(request)
            wanted = sorted(candidate.text(39) for candidate in seed.listed(request, listed))
            assert sorted(shown(asking, seed, query)) == wanted

    monkeypatch.setattr(SeedWorld, "check", check)
    yield
    assert asking.problems == []


def shown(asking: BrowserPage, seed: SeedWorld, query: str) -> list[str]:
    """The candidates that the page lists, as the tests of the seeds write them."""
    page = asking.page
    page.locator("#query").fill(query)
    page.keyboard.press("Enter")
    expect(page.locator(".answer[data-query]")).to_have_count(1)
    lines = page.locator(".candidates .line").all()
    return [
        seed.drawn(line.inner_text(), line.get_attribute("data-mappings") or "") for line in lines
    ]
