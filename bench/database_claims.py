"""Scenarios: claims of several clients at once, beside the same SQL from a plain client."""

from __future__ import annotations

import json

import clouds
from clouds import NODES, Cloud
from contenders import WARM_UP, Contender, plain_contender, roost_contender, two_databases
from crowds import CrowdFailed
from databases import DatabaseError
from http_connection import HttpConnection
from plain_claims import Wanted, make_claims
from results import Column, Table
from stage import Scenario, Stage
from targets import Target

HOSTS = 400
CLIENTS = 8
TURN, QUICK_TURN = 800, 250
"""Claims of all clients in a turn; one client alone makes half of them."""
SPREAD_ALONE, SPREAD, HOT = "1 client, spread", "8 clients, spread", "8 clients, one hot provider"
GOALS = {SPREAD_ALONE: 0.7, SPREAD: 0.6, HOT: 0.6}

TABLE = Table(
    "Claims at once: claims a second of Roost over HTTP, and of plain clients that send the same "
    "SQL, statement by statement\nor batched in two round trips; ms CPU a claim: of the server of "
    "Roost, and of a plain client",
    (
        Column("Roost", ",.0f"),
        Column("plain", ",.0f"),
        Column("batched", ",.0f"),
        Column("Roost/plain", ",.2f", "x"),
        Column("Roost/batched", ",.2f", "x"),
        Column("Roost ms", ".2f"),
        Column("plain ms", ".2f"),
        Column("batched ms", ".2f"),
    ),
)


def database_claims(kind: str) -> Scenario:
    """Claims on one kind of database server."""

    def run(stage: Stage) -> None:
        turn = QUICK_TURN if stage.quick else TURN
        # A hot provider is full after the claims of one turn, neither earlier nor later.
        fill = clouds.contested(HOSTS, 3 * stage.rounds, turn + CLIENTS * WARM_UP)
        try:
            with (
                two_databases(stage, kind, fill) as (cloud, ours, theirs),
                stage.run_roost(ours) as target,
            ):
                contest = Contest(stage, kind, cloud, target, theirs)
                contest.measure(SPREAD_ALONE, 1, turn // 2)
                contest.measure(SPREAD, CLIENTS, turn)
                contest.measure(HOT, CLIENTS, turn)
        except DatabaseError as error:
            stage.results.progress(f"claims-{kind} is left out: {error}")

    return run


class Contest:
    """Turns of Roost and of plain clients, alternating, on one kind of database."""

    def __init__(
        self, stage: Stage, kind: str, cloud: Cloud, target: Target, plain_url: str
    ) -> None:
        self._stage, self._kind, self._cloud = stage, kind, cloud
        self._target, self._plain_url = target, plain_url
        self._hot = iter(cloud.hot)

    def measure(self, name: str, clients: int, turn: int) -> None:
        """Make the claims of every contender in turns, and add a row."""
        stage, title = self._stage, f"{self._kind}: {name}"
        stage.results.progress(f"claims on {title}")
        roost = roost_contender(self._target)
        plain = plain_contender(self._kind, "plain", self._plain_url)
        batched = plain_contender(self._kind, "batched", self._plain_url)
        total = turn + clients * WARM_UP
        try:
            for number in range(stage.rounds):
                for contender in (roost, plain, batched):
                    seed = f"{name} {number}"
                    if name == HOT:
                        self._fill_hot_provider(contender, clients, total, seed)
                    else:
                        contender.turn(clients, self._spread(total), seed)
        except CrowdFailed as error:
            stage.results.failure(f"claims on {title}: {error}")
            return
        stage.results.add(
            TABLE,
            title,
            *(roost.rate, plain.rate, batched.rate),
            *(roost.ratio(plain), roost.ratio(batched)),
            *(roost.server_milliseconds, plain.client_milliseconds, batched.client_milliseconds),
        )
        work = f"claims on {title}: Roost / plain SQL"
        stage.results.at_least(work, roost.ratio(plain), GOALS[name])

    def _spread(self, count: int) -> list[Wanted]:
        """Claims from two providers each: disk of a host, CPU and memory of a NUMA node."""
        wanted: list[Wanted] = []
        for number in range(count):
            # The step is a prime: it reaches all hosts, but not in their order.
            host = number * 7919 % HOSTS
            root = self._cloud.roots[host]
            node = self._cloud.nodes[host * NODES + number // HOSTS % NODES]
            wanted.append({root: {"DISK_GB": 1}, node: {"VCPU": 1, "MEMORY_MB": 128}})
        return wanted

    def _fill_hot_provider(self, contender: Contender, clients: int, total: int, seed: str) -> None:
        provider = next(self._hot)
        wanted: list[Wanted] = [{provider: {"VCPU": 1}}] * total
        contender.turn(clients, wanted, seed)
        if contender.name == "roost":
            self._check_full(provider, total)

    def _check_full(self, provider: str, total: int) -> None:
        """The provider must have exactly these claims, and refuse one more."""
        results = self._stage.results
        usages = self._target.get(f"/resource_providers/{provider}/usages")
        used = json.loads(usages)["usages"]["VCPU"]
        if used != total:
            results.failure(f"{self._kind}: {used} of {total} claims are on the hot provider")
        (claim,) = make_claims(f"one too many {provider}", [{provider: {"VCPU": 1}}])
        status, _ = HttpConnection(self._target).send(claim.request)
        if status != 409:
            results.failure(f"{self._kind}: {status} for a claim on a full provider")
