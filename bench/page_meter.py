#!/usr/bin/env python3
"""Measure the page Cloud of a server in headless chromium, and print the numbers as JSON.

The environment of Roost has playwright. That of the reference, in which scenarios run, has not.
"""

from __future__ import annotations

import json
import shutil
import sys

from playwright.sync_api import Page, sync_playwright

SCROLLED_SECONDS = 3
_MILLISECONDS_MAX = 120_000
# When the first cells are there.
_NOTE_CELLS = """new MutationObserver((_, observer) => {
  if (!document.querySelector(".cell")) return;
  observer.disconnect();
  requestAnimationFrame(() => { window.usable = performance.now(); });
}).observe(document, { childList: true, subtree: true })"""
# All that came before, headers included.
_BYTES = """performance.getEntries()
  .filter((entry) => entry.responseEnd && entry.responseEnd <= window.usable)
  .reduce((sum, entry) => sum + (entry.transferSize || 0), 0)"""
# Counts the frames while the page scrolls.
_SCROLL = """(seconds) => new Promise((resolve) => {
  let frames = 0;
  const began = performance.now();
  const step = (now) => {
    frames += 1;
    window.scrollBy(0, 60);
    if (now - began < 1000 * seconds) requestAnimationFrame(step);
    else resolve(frames / ((now - began) / 1000));
  };
  requestAnimationFrame(step);
})"""


def measure(page: Page, url: str, roots: int) -> dict[str, float]:
    """Open the page, look until cells are there, wait for all roots, and scroll."""
    page.add_init_script(_NOTE_CELLS)
    page.goto(f"{url}/ui/?class=VCPU", wait_until="commit")
    page.wait_for_function("() => window.usable > 0", timeout=_MILLISECONDS_MAX)
    seconds = page.evaluate("() => window.usable") / 1000
    first = page.evaluate(_BYTES)
    count = f"{roots:,}"
    page.wait_for_function(
        "count => document.querySelector('.figure strong')?.textContent === count"
        " && !document.querySelector('.figure small')?.textContent.includes('read')",
        arg=count,
        timeout=_MILLISECONDS_MAX,
    )
    frames = page.evaluate(_SCROLL, SCROLLED_SECONDS)
    return {"kilobytes": first / 1024, "seconds": seconds, "frames": frames}


def main() -> None:
    """Measure the server at an address with so many roots."""
    url, roots = sys.argv[1], int(sys.argv[2])
    program = shutil.which("chromium")
    if program is None:
        sys.exit("No chromium is installed. `make browser` installs it on Debian.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        print(json.dumps(measure(page, url, roots)))
        browser.close()


if __name__ == "__main__":
    main()
