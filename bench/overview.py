"""Scenario: what an overview of all roots and an export of all inventories cost."""

from __future__ import annotations

from urllib.parse import quote

import clouds
from meters import Meter
from queries import GRANULAR
from results import Column, Table
from stage import Servers, Stage

HOSTS = 10_000

TABLE = Table(
    "Overviews and exports: CPU of the server, ms a request",
    (Column("KB", ",.0f"), Column("CPU", ".2f")),
)


def run(stage: Stage) -> None:
    """Measure overviews and exports of flat and of nested hosts."""
    for name, fill in (("flat", clouds.flat(HOSTS)), ("nested", clouds.nested(HOSTS))):
        with stage.servers(f"overview, {name}", fill, reference=False) as servers:
            query = quote(GRANULAR.path(servers.cloud).partition("?")[2], safe="")
            every = "/roost/overview?resource_class=VCPU&page_limit=100000"
            milliseconds = _measure(stage, servers, f"{name}: all roots", every)
            goal = f"overview of {HOSTS:,} roots, {name}"
            stage.results.at_most(goal, milliseconds, 50, " ms")
            _measure(stage, servers, f"{name}: grouped", f"{every}&group_by=aggregate")
            _measure(stage, servers, f"{name}: with what fits", f"{every}&fits={query}")
            _measure(stage, servers, f"{name}: exporter", "/roost/exporter")


def _measure(stage: Stage, servers: Servers, title: str, path: str) -> float:
    roost = servers.roost
    body = roost.get(path)
    meter = Meter(roost)
    for _ in range(stage.rounds):
        meter.run(lambda _: roost.get(path), stage.seconds)
    stage.results.add(TABLE, title, len(body) / 1024, meter.milliseconds)
    return meter.milliseconds
