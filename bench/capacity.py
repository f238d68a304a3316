"""Scenario: what a capacity and a fragmentation cost on a large cloud."""

from __future__ import annotations

import json
from urllib.parse import quote

import clouds
from meters import Meter
from queries import GRANULAR, PLAIN, Query
from results import Column, Table
from stage import Servers, Stage

HOSTS = 10_000

TABLE = Table(
    "Capacity and fragmentation: CPU of the server, ms a request",
    (Column("fits", ",d"), Column("capacity", ".2f"), Column("fragmentation", ".2f")),
)
# Two NUMA nodes, each with a virtual function: the groups compete, so their solutions are packed.
TWO_NODES = Query(
    "two nodes with functions, isolated",
    "resources=DISK_GB:20&resources_A=VCPU:4,MEMORY_MB:{memory}&resources_B=SRIOV_NET_VF:1"
    "&resources_C=VCPU:4,MEMORY_MB:{memory}&resources_D=SRIOV_NET_VF:1"
    "&same_subtree=_A,_B&same_subtree=_C,_D&group_policy=isolate",
)
ISOLATED = Query(
    "isolated functions",
    "resources=DISK_GB:20&resources_A=SRIOV_NET_VF:1&resources_B=SRIOV_NET_VF:1"
    "&group_policy=isolate",
)


def run(stage: Stage) -> None:
    """Measure capacities of hosts that are used alike, of worn hosts, and of pools."""
    for name, fill, queries in (
        ("alike", clouds.nested(HOSTS), (PLAIN, GRANULAR, ISOLATED, TWO_NODES)),
        ("worn", clouds.nested(HOSTS, worn=True), (PLAIN, GRANULAR, ISOLATED, TWO_NODES)),
        ("pools", clouds.sharing(HOSTS), (PLAIN,)),
    ):
        with stage.servers(f"capacity, {name}", fill, reference=False) as servers:
            for query in queries:
                _measure(stage, servers, name, query)


def _measure(stage: Stage, servers: Servers, name: str, query: Query) -> None:
    roost = servers.roost
    text = query.path(servers.cloud).partition("?")[2]
    title = f"{name}: {query.name}"
    fits = json.loads(roost.get(f"/roost/capacity?{text}"))["fits"]
    capacity, fragmentation = Meter(roost), Meter(roost)
    asked = f"/roost/fragmentation?ask={quote(text, safe='')}"
    for _ in range(stage.rounds):
        capacity.run(lambda _: roost.get(f"/roost/capacity?{text}"), stage.seconds)
        fragmentation.run(lambda _: roost.get(asked), stage.seconds)
    stage.results.add(TABLE, title, fits, capacity.milliseconds, fragmentation.milliseconds)
    if query is GRANULAR:
        goal = f"capacity of {HOSTS:,} hosts, {title}"
        stage.results.at_most(goal, capacity.milliseconds, 50, " ms")
