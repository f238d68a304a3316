"""Scenario: what it costs to say why, against the plain search for the same question."""

from __future__ import annotations

import clouds
from meters import Meter
from queries import EXPLAINED, NOTHING, Query
from results import Column, Table, ratio
from stage import Servers, Stage

HOSTS = 10_000
PLAIN = "/allocation_candidates?"

TABLE = Table(
    "Explain: CPU of the server, ms a request, no two questions alike. plain: the candidates, "
    "without a limit;\nreason: the same with X-Roost-Explain: 1; explain: GET /roost/explain; "
    "counts: the same with misses=0",
    (
        Column("plain", ".2f"),
        Column("reason", ".2f"),
        Column("explain", ".2f"),
        Column("counts", ".2f"),
        ratio("reason x"),
        ratio("explain x"),
        ratio("counts x"),
    ),
)


def run(stage: Stage) -> None:
    """Measure questions with and without an answer."""
    hosts = HOSTS // 10 if stage.quick else HOSTS
    with stage.servers("explain", clouds.nested(hosts), reference=False, workers=1) as servers:
        servers.roost.get(NOTHING.path(servers.cloud))
        for query in EXPLAINED:
            _measure(stage, servers, f"nested-{hosts} {query.name}", query)


def _measure(stage: Stage, servers: Servers, name: str, query: Query) -> None:
    roost, cloud = servers.roost, servers.cloud
    stage.results.progress(name)
    meters = plain, reason, explain, counts = tuple(Meter(roost) for _ in range(4))
    # Each way of asking begins at another amount, so that no two questions are alike.
    firsts = [1 + 5_000 * way for way in range(len(meters))]

    def path(number: int) -> str:
        return query.path(cloud, None, number)

    def explained(number: int, more: str = "") -> str:
        return path(number).replace(PLAIN, "/roost/explain?") + more

    for _ in range(stage.rounds):
        plain.run(lambda number: roost.get(path(firsts[0] + number)), stage.seconds)
        reason.run(
            lambda number: roost.get(path(firsts[1] + number), {"X-Roost-Explain": "1"}),
            stage.seconds,
        )
        explain.run(lambda number: roost.get(explained(firsts[2] + number)), stage.seconds)
        counts.run(
            lambda number: roost.get(explained(firsts[3] + number, "&misses=0")), stage.seconds
        )
    costs = [meter.milliseconds for meter in meters]
    ratios = [cost / costs[0] for cost in costs[1:]]
    stage.results.add(TABLE, name, *costs, *ratios)
    stage.results.at_most(f"{name}: reason against the plain search", ratios[0], 1.5)
    stage.results.at_most(f"{name}: explain against the plain search", ratios[1], 3)
