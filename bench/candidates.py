"""Scenarios: candidates of Roost, of the reference, and a static body of the same size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import clouds
from answers import count_candidates, read_answer
from meters import Claims, Meter
from queries import FLAT, GRANULAR, MEMBER_OF, NESTED, NOTHING, PLAIN, Query
from results import Column, Table, ratio
from stage import Scenario, Servers, Stage
from targets import CONNECTIONS, Target

LIMITS = (10, 1000, None)
LARGE = 1000
"""On more hosts, the reference is asked under one limit, and answers are compared on demand."""
REFERENCE_SECONDS = 4.0

TABLE = Table(
    "Candidates: CPU of the server, ms a request. changed: a claim before every request; new: no "
    "two questions alike;\nrepeated: same question, same data; static: the same bytes from the "
    "same server; paced: the same, with a claim elsewhere before every request",
    (
        Column("found", "d"),
        Column("KB", ",.0f"),
        Column("changed", ".2f"),
        Column("new", ".2f"),
        Column("repeated", ".2f"),
        Column("static", ".2f"),
        Column("paced", ".2f"),
        Column("reference", ",.1f"),
        ratio("ref/changed"),
        ratio("changed/paced"),
        ratio("repeated/static"),
        Column("equal"),
    ),
)


@dataclass(frozen=True)
class Bounds:
    """Goals: how many times the cost of a static body candidates may cost."""

    small: float
    """With limit 10, after a claim."""
    large: float
    """With limit 1000, after a claim."""
    repeated: float
    """With limit 1000, unchanged."""


BOUNDS = Bounds(3, 2, 1.15)
LARGE_BOUNDS = Bounds(4, 2.5, 1.2)
"""On 10,000 trees."""


@dataclass
class Costs:
    """The costs of one question, in ms of CPU."""

    changed: float
    new: float
    repeated: float
    static: float
    paced: float
    reference: float | None

    @property
    def gain(self) -> float | None:
        """The cost of the reference, divided by the cost of Roost."""
        return None if self.reference is None else self.reference / self.changed

    @property
    def changed_ratio(self) -> float:
        """The cost divided by that of a static body, sent at the same pace.

        Pauses between requests let caches grow cold.
        """
        return self.changed / self.paced

    @property
    def repeated_ratio(self) -> float:
        """The cost divided by that of a static body, both without pauses between requests."""
        return self.repeated / self.static


class Measurement:
    """One question with one limit, sent to all servers in turns."""

    def __init__(self, stage: Stage, servers: Servers, query: Query, limit: int | None) -> None:
        self._stage = stage
        self._roost, self._reference = servers.roost, servers.reference
        self._cloud, self._query, self._limit = servers.cloud, query, limit
        self._path = query.path(servers.cloud, limit)
        self._claims = Claims(servers.roost, servers.cloud)
        self.body = servers.roost.get(self._path)
        self._static_path = stage.publish(self.body)

    def run(self) -> Costs:
        """Measure all servers in turns."""
        stage = self._stage
        changed, new, repeated = (Meter(self._roost) for _ in range(3))
        static, paced = (Meter(stage.static) for _ in range(2))
        reference = Meter(self._reference) if self._reference else None
        for _ in range(stage.rounds):
            changed.run_after(self._claims.claim, self._ask, stage.seconds)
            self._warm_up(self._roost, self._path)
            repeated.run(self._ask, stage.seconds)
            new.run(self._ask_anew, stage.seconds)
            self._warm_up(stage.static, self._static_path)
            static.run(self._ask_static, stage.seconds)
            paced.run_after(self._claims.claim, self._ask_static, stage.seconds)
            if reference and reference.total_wall < REFERENCE_SECONDS:
                reference.run(self._ask_reference, 0)
        return Costs(
            changed.milliseconds,
            new.milliseconds,
            repeated.milliseconds,
            static.milliseconds,
            paced.milliseconds,
            reference.milliseconds if reference else None,
        )

    def _ask(self, _number: int) -> None:
        self._roost.get(self._path)

    def _ask_anew(self, number: int) -> None:
        self._roost.get(self._query.path(self._cloud, self._limit, number + 1))

    def _ask_static(self, _number: int) -> None:
        self._stage.static.get(self._static_path)

    def _ask_reference(self, _number: int) -> None:
        assert self._reference is not None
        self._reference.get(self._path)

    @staticmethod
    def _warm_up(target: Target, path: str) -> None:
        for _ in range(CONNECTIONS):
            target.get(path)


def measure_queries(
    stage: Stage,
    servers: Servers,
    name: str,
    queries: Sequence[Query],
    limits: Iterable[int | None] | None = None,
) -> dict[tuple[str, int | None], Costs]:
    """Measure questions under limits; a row for each."""
    if servers.reference is not None:
        # The first question also loads code and tables, which are no cost of a question.
        servers.reference.get(NOTHING.path(servers.cloud))
    # The comparison comes first, because the claims of the measurement change the answers.
    equal = {query: compare(stage, servers, name, query) for query in queries}
    costs = {}
    for query in queries:
        for limit in limits or (LIMITS[:2] if stage.quick else LIMITS):
            title = f"{name} {query.name}, limit {limit or 'none'}"
            stage.results.progress(title)
            measurement = Measurement(stage, _asked(servers, limit), query, limit)
            cost = costs[query.name, limit] = measurement.run()
            stage.results.add(
                TABLE,
                title,
                count_candidates(measurement.body),
                len(measurement.body) / 1024,
                cost.changed,
                cost.new,
                cost.repeated,
                cost.static,
                cost.paced,
                cost.reference,
                cost.gain,
                cost.changed_ratio,
                cost.repeated_ratio,
                equal[query],
            )
    return costs


def _asked(servers: Servers, limit: int | None) -> Servers:
    """Ask a large reference under one limit only: its costs are about the same under all."""
    if servers.cloud.hosts > LARGE and limit != 1000:
        return Servers(servers.cloud, servers.roost, None)
    return servers


def compare(stage: Stage, servers: Servers, name: str, query: Query) -> str | None:
    """Whether both services find the same candidates: yes, NO, or `None` if not compared."""
    if servers.reference is None or (servers.cloud.hosts > LARGE and not stage.compare_large):
        return None
    stage.results.progress(f"{name} {query.name}: comparing answers")
    path = query.path(servers.cloud)
    ours, theirs = (read_answer(target.get(path)) for target in (servers.roost, servers.reference))
    defects = [ours.difference(theirs)]
    for limit in LIMITS:
        if limit is not None:
            answer = read_answer(servers.roost.get(query.path(servers.cloud, limit)))
            defects.append(answer.defect(theirs, limit))
    found = [defect for defect in defects if defect]
    for defect in found:
        stage.results.failure(f"{name} {query.name}: {defect}")
    return "NO" if found else "yes"


def flat(hosts: int) -> Scenario:
    """Hosts of one provider, with the questions of the reference's own performance job."""

    def run(stage: Stage) -> None:
        name = f"flat-{hosts}"
        with stage.servers(name, clouds.flat(hosts)) as servers:
            costs = measure_queries(stage, servers, name, FLAT)
        _set_goals(stage, name, costs["plain", 10], costs["plain", 1000])

    return run


def nested(hosts: int) -> Scenario:
    """Trees of seven providers."""

    def run(stage: Stage) -> None:
        name = f"nested-{hosts}"
        with stage.servers(name, clouds.nested(hosts)) as servers:
            costs = measure_queries(stage, servers, name, NESTED)
        bounds = LARGE_BOUNDS if hosts > LARGE else BOUNDS
        _set_goals(stage, name, costs["plain", 10], costs["plain", 1000], bounds)
        if hosts > LARGE:
            for query in (PLAIN, GRANULAR):
                gain = costs[query.name, 1000].gain
                assert gain is not None
                work = f"{name} {query.name}, limit 1000: reference / Roost"
                stage.results.at_least(work, gain, 2000)
            work = f"{name} {MEMBER_OF.name}, limit 1000: changed, CPU"
            stage.results.at_most(work, costs[MEMBER_OF.name, 1000].changed, 5, " ms")

    return run


def full(hosts: int) -> Scenario:
    """Trees of seven providers, with CPU left on one of twenty hosts."""

    def run(stage: Stage) -> None:
        name = f"full-{hosts}"
        with stage.servers(name, clouds.nested(hosts, full=0.95)) as servers:
            measure_queries(stage, servers, name, (PLAIN, GRANULAR), (10, 1000))

    return run


def sharing(hosts: int) -> Scenario:
    """Hosts that share storage pools."""

    def run(stage: Stage) -> None:
        name = f"sharing-{hosts}"
        with stage.servers(name, clouds.sharing(hosts)) as servers:
            measure_queries(stage, servers, name, FLAT)

    return run


def _set_goals(
    stage: Stage, name: str, small: Costs, large: Costs, bounds: Bounds = BOUNDS
) -> None:
    results = stage.results
    results.at_most(f"{name} limit 10: changed / static", small.changed_ratio, bounds.small)
    results.at_most(f"{name} limit 1000: changed / static", large.changed_ratio, bounds.large)
    results.at_most(f"{name} limit 1000: repeated / static", large.repeated_ratio, bounds.repeated)
