"""Scenario: clients that read candidates and claim the first one, as a scheduler does."""

from __future__ import annotations

import json
import statistics
from typing import Any

import clouds
from clouds import NODES, Cloud
from contenders import WARM_UP, Contender, Work, plain_contender, two_databases
from crowds import CrowdFailed
from databases import DatabaseError
from http_connection import HttpConnection, encode
from meters import claim_body
from plain_claims import Claim, Wanted
from queries import FLAT
from results import Column, Table
from stage import Scenario, Stage
from targets import RequestFailed, Target

HOSTS = 400
CLIENTS = 8
LIMIT = 10
TURN, QUICK_TURN = 400, 150
ATTEMPTS = 20
QUERY = FLAT[0]
NODE_HOLDS = 60
"""Claims of this question that fit on one NUMA node."""

TABLE = Table(
    f"Scheduling: {CLIENTS} clients read candidates, limit {LIMIT}, and claim the first one; pairs "
    "a second, ms CPU of the server a pair.\nplain: a plain client claims from the same hosts "
    "by SQL, without a read",
    (
        Column("pairs/s", ",.0f"),
        Column("ms CPU", ".2f"),
        Column("refused", "d"),
        Column("plain", ",.0f"),
        Column("pairs/plain", ",.2f", "x"),
    ),
)


def scheduling(kind: str) -> Scenario:
    """Pairs of a read and a claim, on one kind of database server."""

    def run(stage: Stage) -> None:
        fill = clouds.nested(HOSTS)
        try:
            with (
                two_databases(stage, kind, fill) as (cloud, ours, theirs),
                stage.run_roost(ours) as target,
            ):
                _measure(stage, kind, cloud, target, theirs)
        except DatabaseError as error:
            stage.results.progress(f"scheduling-{kind} is left out: {error}")

    return run


def _measure(stage: Stage, kind: str, cloud: Cloud, target: Target, plain_url: str) -> None:
    title = f"{kind}: read, then claim, {CLIENTS} clients"
    stage.results.progress(f"scheduling on {title}")
    total = (QUICK_TURN if stage.quick else TURN) + CLIENTS * WARM_UP
    scheduler = _scheduler(target, QUERY.path(cloud, LIMIT))
    plain = plain_contender(kind, "plain", plain_url)
    try:
        for number in range(stage.rounds):
            wanted = _first_hosts(cloud, number * total, total)
            scheduler.turn(CLIENTS, wanted, f"scheduling {number}")
            plain.turn(CLIENTS, wanted, f"scheduling {number}")
    except CrowdFailed as error:
        stage.results.failure(f"scheduling on {title}: {error}")
        return
    refused = round(statistics.median(effort.notes for effort in scheduler.efforts))
    stage.results.add(
        TABLE,
        title,
        *(scheduler.rate, scheduler.server_milliseconds, refused),
        *(plain.rate, scheduler.ratio(plain)),
    )
    results = stage.results
    results.at_least(f"{title}: pairs a second", scheduler.rate, 624, "/s")
    results.at_most(f"{title}: CPU of a pair", scheduler.server_milliseconds, 1.9, " ms")


def _scheduler(target: Target, path: str) -> Contender:
    read = encode("GET", path)

    def connect() -> Work:
        connection = HttpConnection(target)

        def schedule(claim: Claim) -> int:
            """Claim the first candidate, and return how often another client was faster."""
            for attempt in range(ATTEMPTS):
                status, answer = connection.send(read)
                if status != 200:
                    raise RequestFailed(f"candidates: {status} {answer[:300]!r}")
                status, answer = connection.send(_claim_first(claim.consumer, answer))
                if status == 204:
                    return attempt
                if status != 409:
                    break
            raise RequestFailed(f"a claim of a candidate: {status} {answer[:300]!r}")

        return schedule

    return Contender("roost", connect, target.cpu_seconds)


def _claim_first(consumer: str, answer: bytes) -> bytes:
    """The claim of the first candidate; the rest of the answer is not parsed."""
    text = answer.decode()
    start = text.index("[", text.index('"allocation_requests"')) + 1
    candidate: dict[str, Any]
    candidate, _ = json.JSONDecoder().raw_decode(text, text.index("{", start))
    body = {**claim_body({}), **candidate}
    return encode("PUT", f"/allocations/{consumer}", body)


def _first_hosts(cloud: Cloud, first: int, count: int) -> list[Wanted]:
    """The first candidates in their order: claims fill each NUMA node before the next one."""
    wanted: list[Wanted] = []
    for number in range(first, first + count):
        node = number // NODE_HOLDS
        resources = {"VCPU": 1, "MEMORY_MB": QUERY.memory}
        wanted.append({cloud.roots[node // NODES]: {"DISK_GB": 10}, cloud.nodes[node]: resources})
    return wanted
