"""Scenario: a tree of 1,000 providers is declared, changed and withdrawn, at once and by steps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import clouds
from results import Column, Table
from stage import Stage
from targets import Target

PROVIDERS = 1000
ROOT = "rack"
TRAITS = ["HW_NUMA_ROOT", "CUSTOM_RACK"]

TABLE = Table(
    f"A tree of {PROVIDERS:,} providers: seconds, and CPU of the server in seconds",
    (
        Column("PUT", ".2f"),
        Column("steps", ".2f"),
        Column("times", ".0f"),
        Column("PUT CPU", ".2f"),
        Column("steps CPU", ".2f"),
    ),
)
GOAL = 20

Work = Callable[[Target], None]
Effort = tuple[float, float]
"""Seconds, and seconds of the server's CPU."""


def run(stage: Stage) -> None:
    """Measure the three things that happen to a tree, in turns; the medians count."""
    with stage.servers("a small cloud", clouds.flat(10), reference=False) as servers:
        roost = servers.roost
        roost.request("PUT", "/traits/CUSTOM_RACK")
        # The first declaration compiles the statements.
        for _, at_once, _ in STAGES:
            at_once(roost)
        efforts: dict[str, list[tuple[Effort, Effort]]] = {what: [] for what, _, _ in STAGES}
        for _ in range(stage.rounds):
            for what, at_once, by_steps in STAGES:
                efforts[what].append((_timed(roost, at_once), _timed(roost, by_steps)))
    for what, pairs in efforts.items():
        _note(stage, what, pairs)


def _note(stage: Stage, what: str, pairs: list[tuple[Effort, Effort]]) -> None:
    (seconds, cpu), (steps_seconds, steps_cpu) = (
        tuple(statistics.median(values) for values in zip(*efforts, strict=True))
        for efforts in zip(*pairs, strict=True)
    )
    times = steps_seconds / seconds
    stage.results.add(TABLE, what, seconds, steps_seconds, times, cpu, steps_cpu)
    # A step that changes a known provider is one request without any reading.
    if what != "changed":
        stage.results.at_least(f"a tree of {PROVIDERS:,} providers {what}", times, GOAL)


def _timed(roost: Target, work: Work) -> Effort:
    cpu, began = roost.cpu_seconds(), time.perf_counter()
    work(roost)
    return time.perf_counter() - began, roost.cpu_seconds() - cpu


def _inventories(total: int) -> dict[str, Any]:
    return {"VCPU": {"total": total}, "MEMORY_MB": {"total": 4096, "reserved": 64}}


def _put(roost: Target, total: int) -> None:
    """Declare the whole tree in one request; withdraw it if the total is 0."""
    children = [
        {"name": f"{ROOT}_{number}", "inventories": _inventories(total), "traits": TRAITS}
        for number in range(1, PROVIDERS)
    ]
    tree = [{"name": ROOT, "children": children}] if total else []
    roost.request("PUT", f"/roost/trees/{ROOT}?owner=bench", {"providers": tree})


def _uuid(number: int) -> str:
    return str(UUID(int=number + 1))


def _create(roost: Target) -> None:
    for number in range(PROVIDERS):
        parent = {"parent_provider_uuid": _uuid(0)} if number else {}
        body = {"name": f"step_{number}", "uuid": _uuid(number), **parent}
        roost.request("POST", "/resource_providers", body)
        if number:
            _replace(roost, number, "inventories", _inventories(8), 0)
            _replace(roost, number, "traits", TRAITS, 1)


def _change(roost: Target) -> None:
    for number in range(1, PROVIDERS):
        _replace(roost, number, "inventories", _inventories(9), 2)


def _delete(roost: Target) -> None:
    for number in reversed(range(PROVIDERS)):
        roost.request("DELETE", f"/resource_providers/{_uuid(number)}")


def _replace(roost: Target, number: int, part: str, value: Any, generation: int) -> None:
    body = {part: value, "resource_provider_generation": generation}
    roost.request("PUT", f"/resource_providers/{_uuid(number)}/{part}", body)


STAGES: tuple[tuple[str, Work, Work], ...] = (
    ("created", lambda roost: _put(roost, 8), _create),
    ("changed", lambda roost: _put(roost, 9), _change),
    ("withdrawn", lambda roost: _put(roost, 0), _delete),
)
