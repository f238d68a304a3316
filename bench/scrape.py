"""Scenario: what a scrape of `/metrics` costs on a large cloud."""

from __future__ import annotations

import time

import clouds
from meters import Meter
from results import Column, Table
from stage import Stage

HOSTS = 10_000

TABLE = Table(
    "A scrape of /metrics: CPU of the server, ms a scrape",
    (Column("series", "d"), Column("KB", ",.0f"), Column("CPU", ".2f")),
)


def run(stage: Stage) -> None:
    """Measure scrapes between other requests, as Prometheus sends them."""
    with stage.servers("scrape", clouds.nested(HOSTS), reference=False) as servers:
        roost = servers.roost
        question = "/allocation_candidates?resources=VCPU:1&limit=10"
        for path in (question, "/traits", "/resource_classes"):
            roost.get(path)
        body = roost.get("/metrics")
        meter = Meter(roost)

        def prepare(_: int) -> None:
            # Clients share a scrape for a second at most.
            time.sleep(1.1)
            roost.get(question)

        for _ in range(stage.rounds):
            meter.run_after(prepare, lambda _: roost.get("/metrics"), stage.seconds)
        series = sum(not line.startswith(b"#") for line in body.splitlines())
        name = f"{HOSTS:,} hosts of seven providers"
        stage.results.add(TABLE, name, series, len(body) / 1024, meter.milliseconds)
        stage.results.at_most(f"scrape of {HOSTS:,} hosts: CPU", meter.milliseconds, 50, " ms")
