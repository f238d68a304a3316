"""Make the pictures of the pages: `make screenshots` starts a server with the demo cloud."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from roost.demo.world import NEARLY_FITS

HERE = Path(__file__).parent
PORT = 8779
# By the name of the picture: page, parameters, and what appears when the page is complete.
PICTURES = {
    "cloud": (
        "",
        {"class": "PCPU", "group": "aggregate", "name": "demo-host", "fits": "resources=PCPU:8"},
        ".cell",
    ),
    "ask": ("ask", {"query": NEARLY_FITS}, "h1"),
}


def main() -> None:
    """Start the server, and take the pictures."""
    program = shutil.which("chromium")
    if program is None:
        sys.exit("No chromium is installed. `make browser` installs it on Debian.")
    with tempfile.TemporaryDirectory() as directory:
        command = [Path(sys.executable).parent / "roost", "serve", "--demo", "--port", str(PORT)]
        server = subprocess.Popen([*command, "--db", f"sqlite:///{directory}/demo.db"])
        try:
            take(program)
        finally:
            server.terminate()
            server.wait()


def take(program: str) -> None:
    """Take all pictures of the running server."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 680})
        base = f"http://127.0.0.1:{PORT}/ui/"
        for _ in range(100):
            try:
                page.goto(base)
                break
            except Exception:
                page.wait_for_timeout(200)
        for name, (path, parameters, complete) in PICTURES.items():
            page.goto(f"{base}{path}?{urlencode(parameters)}")
            page.wait_for_selector(complete)
            page.screenshot(path=HERE / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
