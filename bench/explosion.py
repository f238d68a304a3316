"""Scenario: trees so wide that no service can make all their candidates."""

from __future__ import annotations

import clouds
from candidates import compare
from meters import Claims, Meter
from queries import NOTHING, Query, network_groups
from results import Column, Table, ratio
from stage import Servers, Stage

LIMIT = 1000
HOSTS = (1, 10, 100, 1000)
# The last one is impossible: nine groups on eight devices.
QUERIES = (network_groups(8, "none"), network_groups(8, "isolate"), network_groups(9, "isolate"))
# Questions that the reference can answer, on one host.
BOUNDED = (network_groups(3, "none"), network_groups(4, "isolate"), network_groups(4, "none"))
# The compared question is not measured: the service must not know the measured questions.
COMPARED = network_groups(3, "isolate")
MEGABYTE = 1 << 20

TABLE = Table(
    "Explosion: hosts with 8 devices of 8 functions, limit 1000; ms a request. first: the first "
    "time that the question is asked;\nthen, wall: with a claim before every request; grown, "
    "memory: resident MB of the worker",
    (
        Column("KB", ",.0f"),
        Column("first", ".1f"),
        Column("then", ".2f"),
        Column("wall", ".2f"),
        Column("grown", ".1f"),
        Column("memory", ".0f"),
        Column("reference", ",.0f"),
        ratio("ratio"),
    ),
)


def run(stage: Stage) -> None:
    """Measure clouds of growing size, and compare one host with the reference."""
    dearest = 0.0
    for hosts in (1, 100) if stage.quick else HOSTS:
        name = f"wide-{hosts}"
        with stage.servers(name, clouds.wide(hosts), reference=hosts == 1, workers=1) as servers:
            servers.roost.get(NOTHING.path(servers.cloud))
            if servers.reference:
                servers.reference.get(NOTHING.path(servers.cloud))
                compare(stage, servers, name, COMPARED)
                for query in BOUNDED:
                    _measure(stage, servers, name, query)
            alone = Servers(servers.cloud, servers.roost, None)
            for query in QUERIES:
                dearest = max(dearest, _measure(stage, alone, name, query))
    stage.results.at_most(
        "8 devices x 8 groups, limit 1000: CPU of the dearest", dearest, 50, " ms"
    )


def _measure(stage: Stage, servers: Servers, name: str, query: Query) -> float:
    """Measure one question and return the largest CPU time of its answers."""
    roost, path = servers.roost, query.path(servers.cloud, LIMIT)
    stage.results.progress(f"{name} {query.name}")
    before = roost.memory()
    first, then = Meter(roost), Meter(roost)
    first.run(lambda _: roost.get(path), 0)
    body = roost.get(path)
    claims = Claims(roost, servers.cloud)
    for _ in range(stage.rounds):
        then.run_after(claims.claim, lambda _: roost.get(path), stage.seconds)
    theirs = None
    if servers.reference:
        meter = Meter(servers.reference)
        meter.run(lambda _: servers.reference and servers.reference.get(path), 0)
        theirs = meter.milliseconds
    memory = roost.memory()
    stage.results.add(
        TABLE,
        f"{name} {query.name}",
        len(body) / 1024,
        first.milliseconds,
        then.milliseconds,
        then.wall_milliseconds,
        (memory - before) / MEGABYTE,
        memory / MEGABYTE,
        theirs,
        theirs and theirs / then.milliseconds,
    )
    return max(first.milliseconds, then.milliseconds)
