"""A real browser on the pages of an application in this process, or of a live server.

The browser sends its requests to a host that does not exist, and the application of the test
answers them. So a test needs no port, and other clients of the test change the same database.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect, sync_playwright

from support.api_client import ApiClient
from support.requirements import note_missing
from support.waiting import SECONDS_MAX

HOST = "http://roost.test"
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_MILLISECONDS_MAX = SECONDS_MAX * 1000
expect.set_options(timeout=_MILLISECONDS_MAX)
_AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Chromium with a fresh profile; the test is skipped where there is none."""
    if not PROGRAM:
        note_missing("browser", "no chromium here; `make browser` installs it on Debian")
        pytest.skip("no chromium is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=[*_OPTIONS])
        yield browser
        browser.close()


class BrowserPage:
    """One window, with all that went wrong in it: errors of scripts, and reports of the policy."""

    def __init__(self, page: Page, base: str = HOST) -> None:
        self.page = page
        self.base = base
        self.api: ApiClient | None = None
        self.problems: list[str] = []
        # Statuses that the test expects. The browser writes a line about each of them.
        self.expected: set[int] = set()
        page.set_default_timeout(_MILLISECONDS_MAX)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        if base == HOST:
            page.route(f"{HOST}/**", self._answer)

    def _note(self, kind: str, text: str) -> None:
        status = re.search(r"status of (\d+)", text)
        if kind in ("error", "warning") and not (status and int(status[1]) in self.expected):
            self.problems.append(text)

    def _answer(self, route: Route) -> None:
        assert self.api is not None
        request = route.request
        split = urlsplit(request.url)
        target = quote(split.path, safe="/%:@,~") + (f"?{split.query}" if split.query else "")
        body = request.post_data_buffer or b""
        headers = dict(request.headers)
        if body:
            headers["content-length"] = str(len(body))
        answer = self.api.send(request.method, target, body, headers)
        # The page may have left before its answer came.
        with suppress(Error):
            route.fulfill(status=answer.status, headers=dict(answer.headers), body=answer.body)

    def open(self, path: str = "", **parameters: str) -> Page:
        """Go to a page, and wait until it shows something."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        self.page.goto(f"{self.base}/ui/{path}{query}")
        self.page.wait_for_selector("footer a")
        return self.page

    def text(self, selector: str) -> str:
        """The text of the first element."""
        return self.page.locator(selector).first.inner_text()

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements."""
        return self.page.locator(selector).all_inner_texts()

    def violations(self) -> list[str]:
        """The serious violations of accessibility that axe-core finds."""
        self.page.evaluate(_AXE.read_text())
        found: Any = self.page.evaluate("axe.run({resultTypes: ['violations']})")
        return [
            f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes']][:3]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]


def need_axe() -> None:
    """Skip the test where axe-core is not installed."""
    if not _AXE.exists():
        note_missing("axe-core", f"not installed in {_AXE.parent}; `make test` does that with npm")
        pytest.skip("axe-core is not installed")
