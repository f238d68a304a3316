"""Scenario: the page Cloud on 10,000 roots, in headless chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from statistics import median

import clouds
from results import Column, Table
from stage import Stage

HOSTS = 10_000

TABLE = Table(
    f"The page Cloud on {HOSTS:,} roots, in headless chromium",
    (
        Column("KB of the first view", ",.0f"),
        Column("s until usable", ".2f"),
        Column("frames/s", ".0f"),
    ),
)


def run(stage: Stage) -> None:
    """Measure the first view of flat and of nested hosts, and how it scrolls."""
    if shutil.which("chromium") is None:
        print("pages: no chromium is installed, so nothing is measured")
        return
    for name, fill in (("flat", clouds.flat(HOSTS)), ("nested", clouds.nested(HOSTS))):
        with stage.servers(f"pages, {name}", fill, reference=False) as servers:
            servers.roost.get("/roost/overview?page_limit=1")
            found = [
                _measure(stage, f"http://127.0.0.1:{servers.roost.port}")
                for _ in range(stage.rounds)
            ]
        kilobytes, seconds, frames = (
            median(one[key] for one in found) for key in ("kilobytes", "seconds", "frames")
        )
        stage.results.add(TABLE, name, kilobytes, seconds, frames)
        stage.results.at_most(f"bytes of the first view, {name}", kilobytes, 300, " KB")
        stage.results.at_most(f"time until usable, {name}", seconds, 2, " s")
        stage.results.at_least(f"frames while scrolling, {name}", frames, 30, " a second")


def _measure(stage: Stage, url: str) -> dict[str, float]:
    program = [stage.roost.with_name("python"), Path(__file__).with_name("page_meter.py")]
    done = subprocess.run(
        [*program, url, str(HOSTS)], check=True, capture_output=True, text=True, timeout=300
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found
