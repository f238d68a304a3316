"""Scenario: requests a second, with the concurrency of the reference's own performance job."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import clouds
from queries import FLAT, Query
from results import Column, Table, ratio
from stage import Servers, Stage
from targets import Target

HOSTS = 1_000
CLIENTS = 10

TABLE = Table(
    f"Throughput: {CLIENTS} clients on the same machine, {HOSTS:,} flat hosts; requests a second",
    (
        Column("repeated", ",.0f"),
        Column("new", ",.0f"),
        Column("static", ",.0f"),
        Column("reference", ",.1f"),
        ratio("repeated/ref"),
        ratio("new/ref"),
    ),
)

PathOf = Callable[[int], str]


def run(stage: Stage) -> None:
    """Measure Roost, the static server and the reference, all with the same workers."""
    seconds = 2.0 if stage.quick else 4.0
    fill = clouds.flat(HOSTS)
    with stage.servers("throughput", fill, reference_workers=stage.workers) as servers:
        for query in FLAT:
            _measure(stage, servers, query, seconds)


def _measure(stage: Stage, servers: Servers, query: Query, seconds: float) -> None:
    assert servers.reference is not None
    stage.results.progress(f"throughput {query.name}")
    cloud, path = servers.cloud, query.path(servers.cloud)
    static_path = stage.publish(servers.roost.get(path))
    repeated = _rate(servers.roost, lambda _: path, seconds)
    new = _rate(servers.roost, lambda number: query.path(cloud, None, number), seconds)
    static = _rate(stage.static, lambda _: static_path, seconds)
    theirs = _rate(servers.reference, lambda _: path, seconds)
    name = f"flat-{HOSTS} {query.name}, limit none"
    stage.results.add(TABLE, name, repeated, new, static, theirs, repeated / theirs, new / theirs)
    if query is FLAT[0]:
        work = f"{name}: requests a second, Roost / reference"
        stage.results.at_least(work, repeated / theirs, 100)


def _rate(target: Target, path_of: PathOf, seconds: float) -> float:
    """Requests a second of all clients; every client asks at least twice."""
    numbers = itertools.count()
    counts = [0] * CLIENTS
    started = time.monotonic()

    def ask(index: int) -> None:
        client = target.connect()
        while counts[index] < 2 or time.monotonic() - started < seconds:
            client.get(path_of(next(numbers)))
            counts[index] += 1

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - started)
