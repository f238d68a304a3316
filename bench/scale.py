"""Scenario: 700,000 providers: start, memory, candidates."""

from __future__ import annotations

import clouds
from candidates import measure_queries
from queries import NESTED, NOTHING, SELECTIVE
from results import Column, Table
from stage import Servers, Stage

HOSTS = 100_000
RARE = 20
"""Hosts with a rare trait, and as many with a rare amount."""
SELECTIVE_MILLISECONDS = 5
MEGABYTE = 1 << 20

TABLE = Table(
    "Scale: CPU in seconds from the start to the first answer, of all processes; memory of the "
    "worker in MB",
    (
        Column("providers", ",d"),
        Column("start", ".2f"),
        Column("memory", ",.0f"),
        Column("peak", ",.0f"),
        Column("bytes each", ",.0f"),
    ),
)


def run(stage: Stage) -> None:
    """Measure the start on one tree and on many trees, and candidates on many trees."""
    start, memory = _start(stage, "one tree", 1, 0, 0)
    hosts = HOSTS // 10 if stage.quick else HOSTS
    _start(stage, "all", hosts, start, memory)


def _start(
    stage: Stage, name: str, hosts: int, least_start: float, least_memory: int
) -> tuple[float, int]:
    fill = clouds.nested(hosts, rare=RARE if hosts > RARE else 0)
    with stage.servers(f"scale, {name}", fill, reference=False, workers=1) as servers:
        roost, cloud = servers.roost, servers.cloud
        roost.get(NOTHING.path(cloud))
        start, memory, peak = roost.cpu_seconds(), roost.memory(), roost.peak_memory()
        each = (memory - least_memory) / cloud.providers if least_memory else None
        stage.results.add(
            TABLE,
            f"scale, {cloud.hosts:,} trees",
            cloud.providers,
            start,
            memory / MEGABYTE,
            peak / MEGABYTE,
            each,
        )
        if each is not None:
            work = f"start with {cloud.providers:,} providers"
            stage.results.at_most(work, start, 6, " s")
            stage.results.at_most(f"{work}, less an empty start", start - least_start, 6, " s")
            stage.results.at_most("memory per provider and worker", each, 500, " B")
            alone = Servers(cloud, roost, None)
            measure_queries(stage, alone, f"nested-{hosts}", NESTED, (10, 1000))
            _ask_selectively(stage, alone)
            after = roost.memory()
            stage.results.add(
                TABLE,
                f"scale, {cloud.hosts:,} trees, after the questions",
                cloud.providers,
                None,
                after / MEGABYTE,
                roost.peak_memory() / MEGABYTE,
                (after - least_memory) / cloud.providers,
            )
        return start, memory


def _ask_selectively(stage: Stage, servers: Servers) -> None:
    """Questions for which a search has to find the few trees that matter, or that there is none."""
    name = f"nested-{servers.cloud.hosts}"
    costs = measure_queries(stage, servers, name, SELECTIVE, (1000,))
    for query in SELECTIVE:
        cost = costs[query.name, 1000]
        for kind, milliseconds in (("changed", cost.changed), ("new", cost.new)):
            work = f"{servers.cloud.providers:,} providers, {query.name}: {kind}, CPU"
            stage.results.at_most(work, milliseconds, SELECTIVE_MILLISECONDS, " ms")
