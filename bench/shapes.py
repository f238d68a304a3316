"""Scenario: a cloud of hosts with a thousand different trees."""

from __future__ import annotations

import clouds
from meters import Claims, Meter
from queries import GRANULAR, PLAIN, Query
from results import Column, Table, ratio
from stage import Scenario, Servers, Stage

SHAPES = 1_000

TABLE = Table(
    f"Shapes of trees: CPU of the server, ms a request, with one shape and with {SHAPES:,}",
    (
        Column("KB", ",.0f"),
        Column("one", ".2f"),
        Column("many", ".2f"),
        ratio("ratio"),
        Column("one, new", ".2f"),
        Column("many, new", ".2f"),
        ratio("ratio, new"),
    ),
)


class Side:
    """One question to one of the two clouds."""

    def __init__(self, servers: Servers, query: Query, limit: int) -> None:
        self.changed, self.new = Meter(servers.roost), Meter(servers.roost)
        self._roost, self._cloud = servers.roost, servers.cloud
        self._query, self._limit = query, limit

    def ask(self, number: int = 0) -> bytes:
        """Ask. Each number gives a different question."""
        return self._roost.get(self._query.path(self._cloud, self._limit, number))

    def turn(self, seconds: float) -> None:
        """Ask for a while, with a claim before every request, then with new questions only."""
        self.ask()
        claims = Claims(self._roost, self._cloud)
        self.changed.run_after(claims.claim, lambda _: self.ask(), seconds)
        self.new.run(lambda number: self.ask(number + 1), seconds)


def shapes(hosts: int) -> Scenario:
    """The same hosts in one shape and in a thousand."""

    def run(stage: Stage) -> None:
        name = f"shapes-{hosts}"
        with (
            stage.servers(f"{name}, 1", clouds.many_shapes(hosts, 1), reference=False) as one,
            stage.servers(
                f"{name}, {SHAPES}", clouds.many_shapes(hosts, SHAPES), reference=False
            ) as many,
        ):
            for query in (PLAIN, GRANULAR):
                for limit in (10, 1000):
                    title = f"{name} {query.name}, limit {limit}"
                    sides = (Side(one, query, limit), Side(many, query, limit))
                    _measure(stage, title, sides)

    return run


def _measure(stage: Stage, title: str, sides: tuple[Side, Side]) -> None:
    stage.results.progress(title)
    for _ in range(stage.rounds):
        for side in sides:
            side.turn(stage.seconds)
    one, many = (side.changed.milliseconds for side in sides)
    one_new, many_new = (side.new.milliseconds for side in sides)
    stage.results.add(
        TABLE,
        title,
        *(len(sides[1].ask()) / 1024, one, many, many / one),
        *(one_new, many_new, many_new / one_new),
    )
    stage.results.at_most(f"{title}: many / one", many / one, 3)
