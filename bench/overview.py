"""Scenario: what an overview, an export and all trees in one answer cost."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import clouds
from meters import Meter
from queries import GRANULAR
from results import Column, Table
from stage import Servers, Stage
from targets import NO_HEADERS

HOSTS = 10_000

TABLE = Table(
    "Overviews, exports and trees: CPU of the server, ms a request",
    (Column("KB", ",.0f"), Column("CPU", ".2f")),
)

AS_LINES = {"Accept": "application/x-ndjson"}
MEGABYTE = 1 << 20


def run(stage: Stage) -> None:
    """Measure overviews, exports and trees of flat and of nested hosts."""
    for name, fill in (("flat", clouds.flat(HOSTS)), ("nested", clouds.nested(HOSTS))):
        with stage.servers(f"overview, {name}", fill, reference=False) as servers:
            _measure_trees(stage, servers, name)
            query = quote(GRANULAR.path(servers.cloud).partition("?")[2], safe="")
            every = "/roost/overview?resource_class=VCPU&page_limit=100000"
            milliseconds = _measure(stage, servers, f"{name}: all roots", every)
            goal = f"overview of {HOSTS:,} roots, {name}"
            stage.results.at_most(goal, milliseconds, 50, " ms")
            _measure(stage, servers, f"{name}: grouped", f"{every}&group_by=aggregate")
            _measure(stage, servers, f"{name}: with what fits", f"{every}&fits={query}")
            _measure(stage, servers, f"{name}: exporter", "/roost/exporter")


def _measure_trees(stage: Stage, servers: Servers, name: str) -> None:
    """Measure all trees in one answer, and the memory that it takes on the way."""
    servers.roost.forget_peak()
    before = servers.roost.memory()
    title = f"{HOSTS:,} trees as lines, {name}"
    milliseconds = _measure(stage, servers, title, "/roost/trees", AS_LINES)
    stage.results.at_most(title, milliseconds, 2000, " ms")
    more = (servers.roost.peak_memory() - before) / MEGABYTE
    stage.results.at_most(f"{title}: memory", more, 50, " MB")


def _measure(
    stage: Stage, servers: Servers, title: str, path: str, headers: Mapping[str, str] = NO_HEADERS
) -> float:
    roost = servers.roost
    body = roost.get(path, headers)
    meter = Meter(roost)
    for _ in range(stage.rounds):
        meter.run(lambda _: roost.get(path, headers), stage.seconds)
    stage.results.add(TABLE, title, len(body) / 1024, meter.milliseconds)
    return meter.milliseconds
