"""Ways to make claims: over HTTP, and by plain SQL; and what their turns have cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import clouds
import plain_mariadb
import plain_postgresql
from clouds import Cloud
from crowds import Effort, run_crowd
from databases import open_databases
from http_connection import HttpConnection
from plain_claims import Claim, PlainClient, Wanted, make_claims
from stage import Stage
from targets import RequestFailed, Target

WARM_UP = 6
"""Claims of each client before a turn: PostgreSQL plans a statement anew five times."""
PLAIN_CLIENTS: dict[str, dict[str, Callable[[str], PlainClient]]] = {
    "postgresql": {
        "plain": plain_postgresql.StatementByStatement,
        "batched": plain_postgresql.Batched,
    },
    "mariadb": {"plain": plain_mariadb.StatementByStatement, "batched": plain_mariadb.Batched},
}

Work = Callable[[Claim], int]


@dataclass
class Contender:
    """A way to do work for claims, and what its turns have cost."""

    name: str
    connect: Callable[[], Work]
    """Connects a client, in the client's own process."""
    server_cpu: Callable[[], float] = lambda: 0.0
    efforts: list[Effort] = field(default_factory=list)

    def turn(self, clients: int, wanted: Sequence[Wanted], seed: str) -> None:
        """Make the claims, the first of which warm the clients up."""
        # Plain clients write into one database, so each contender has consumers of its own.
        claims = make_claims(f"{self.name} {seed}", wanted)
        warm_up = clients * WARM_UP
        effort = run_crowd(
            clients, self.connect, claims[warm_up:], claims[:warm_up], self.server_cpu
        )
        self.efforts.append(effort)

    @property
    def rate(self) -> float:
        """Claims a second, in the median turn."""
        return statistics.median(effort.rate for effort in self.efforts)

    def ratio(self, other: Contender) -> float:
        """The rate divided by that of the next turn of another contender, in the median round.

        Neighbouring turns meet the same disk and the same load of the machine.
        """
        pairs = zip(self.efforts, other.efforts, strict=True)
        return statistics.median(ours.rate / theirs.rate for ours, theirs in pairs)

    @property
    def server_milliseconds(self) -> float:
        """CPU of the server for a claim, in the median turn."""
        return 1000 * statistics.median(each.server_cpu / each.jobs for each in self.efforts)

    @property
    def client_milliseconds(self) -> float:
        """CPU of the client for a claim, in the median turn."""
        return 1000 * statistics.median(each.client_cpu / each.jobs for each in self.efforts)


def roost_contender(target: Target) -> Contender:
    """Claims over HTTP, all of which have room."""

    def connect() -> Work:
        connection = HttpConnection(target)

        def send(claim: Claim) -> int:
            status, answer = connection.send(claim.request)
            if status != 204:
                raise RequestFailed(f"a claim with room: {status} {answer[:300]!r}")
            return 0

        return send

    return Contender("roost", connect, target.cpu_seconds)


def plain_contender(kind: str, name: str, url: str) -> Contender:
    """Claims by plain SQL."""
    return Contender(name, partial(_connect_plain, PLAIN_CLIENTS[kind][name], url))


def _connect_plain(client: Callable[[str], PlainClient], url: str) -> Work:
    return client(url).claim


@contextmanager
def two_databases(stage: Stage, kind: str, fill: clouds.Fill) -> Iterator[tuple[Cloud, str, str]]:
    """The same cloud in two databases of one server: one for Roost, one for plain clients."""
    with stage.home() as home, open_databases(kind, home, keep=False) as databases:
        stage.results.progress(f"making the cloud twice, in {kind}")
        urls = [databases.create().url for _ in range(2)]
        made = [clouds.make_in_database(fill, url, stage.roost) for url in urls]
        yield made[0], urls[0], urls[1]
