"""Scenario: which of 10,000 hosts may be lost, and what a what-if costs there."""

from __future__ import annotations

import json
from statistics import median

import clouds
from results import Column, Table
from stage import Stage
from targets import Target

HOSTS = 10_000
SECONDS = 5.0

TABLE = Table(
    "Resilience: CPU of the server, seconds a question",
    (
        Column("consumers", ",d"),
        Column("survives", ",d"),
        Column("exact", "d"),
        Column("CPU", ".2f"),
    ),
)
WHATIF_TABLE = Table(
    "What-if, limit 10 before and after: CPU of the server, ms a question",
    (Column("changes", "d"), Column("CPU", ".1f")),
)


def run(stage: Stage) -> None:
    """Measure hosts with much room, with little and with none, and hosts of seven providers."""
    worlds = {
        "half of the CPU is held": clouds.occupied(HOSTS, 0.5),
        "nine tenths are held": clouds.occupied(HOSTS, 0.9),
        "nearly all is held": clouds.occupied(HOSTS, 0.99),
        "seven providers a host": clouds.nested(HOSTS),
        "seven providers, 95 % without CPU": clouds.nested(HOSTS, full=0.95),
    }
    for name, fill in worlds.items():
        with stage.servers(name, fill, reference=False, workers=1) as servers:
            roost = servers.roost
            roost.get("/allocation_candidates?resources=VCPU:1&limit=10")
            answer, seconds = _asked(roost, stage.rounds)
            stage.results.add(
                TABLE,
                f"{HOSTS:,} hosts, {name}",
                servers.cloud.consumers,
                answer["survives"],
                int(answer["exact"]),
                seconds,
            )
            work = f"resilience of {HOSTS:,} hosts, {name}: CPU"
            stage.results.at_most(work, seconds, SECONDS, " s")
            if name == "seven providers a host":
                _measure_whatif(stage, roost, servers.cloud.roots)


def _asked(roost: Target, rounds: int) -> tuple[dict[str, int], float]:
    """The answer, and the CPU of the median question."""
    spent = []
    for _ in range(max(1, rounds)):
        before = roost.cpu_seconds()
        body = roost.get("/roost/resilience?lose=1")
        spent.append(roost.cpu_seconds() - before)
    return json.loads(body), median(spent)


def _measure_whatif(stage: Stage, roost: Target, roots: list[str]) -> None:
    ask = [{"candidates": "resources=VCPU:4,MEMORY_MB:4096&limit=10"}]
    for count in (1, 10, 100):
        changes = [{"drain": uuid} for uuid in roots[:count]]
        body = {"changes": changes, "ask": ask}
        questions = 20 * max(1, stage.rounds)
        before = roost.cpu_seconds()
        for _ in range(questions):
            roost.request("POST", "/roost/whatif", body)
        milliseconds = 1000 * (roost.cpu_seconds() - before) / questions
        stage.results.add(WHATIF_TABLE, f"drain {count} of {HOSTS:,} hosts", count, milliseconds)
