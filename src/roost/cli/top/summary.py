"""What a server did between two scrapes. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from roost.client.scrape import Scrape

_DURATION = "roost_request_duration_seconds_bucket"


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One route and method: requests a second, errors a second, seconds that requests took."""

    route: str
    method: str
    requests: float
    errors: float
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One resource class of the whole cloud."""

    name: str
    capacity: float
    used: float
    reserved: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A second of the server, on average since the earlier scrape."""

    version: str
    seconds: float
    workers: int
    memory_bytes: float
    cpu: float
    in_flight: float
    connections: float
    providers: float
    requests: float
    errors: float
    claims: float
    conflicts: dict[str, float]
    retries: float
    searches: float
    kept_answers: float
    refreshes: float
    rebuilds: float
    journal_rows: float
    journal_lag: float | None
    routes: list[RouteRow]
    stages: dict[str, float]
    classes: list[ClassRow]


def summarise(before: Scrape | None, now: Scrape, wall_time: float) -> Summary:
    """The difference of two scrapes. Without an earlier one: since the start of the server."""
    started = min(
        (value for _, value in now.samples("roost_worker_start_time_seconds")), default=wall_time
    )
    seconds = max(wall_time - started if before is None else now.moment - before.moment, 1e-9)

    def rate(name: str, **labels: str) -> float:
        grown = now.total(name, **labels)
        if before is not None:
            earlier = before.total(name, **labels)
            # After a restart the counters begin at zero.
            grown = grown - earlier if grown >= earlier else grown
        return grown / seconds

    def rates_by(name: str, label: str) -> dict[str, float]:
        values = sorted({labels.get(label, "") for labels, _ in now.samples(name)})
        found = {value: rate(name, **{label: value}) for value in values}
        return {value: number for value, number in found.items() if number > 0}

    looked = now.total("roost_journal_last_look_timestamp_seconds")
    versions = [labels.get("version", "") for labels, _ in now.samples("roost_build_info")]
    return Summary(
        version=versions[0] if versions else "",
        seconds=seconds,
        workers=int(now.total("roost_workers")),
        memory_bytes=now.total("roost_worker_resident_memory_bytes"),
        cpu=rate("roost_worker_cpu_seconds_total"),
        in_flight=now.total("roost_requests_in_flight"),
        connections=now.total("roost_server_connections"),
        providers=now.total("roost_providers"),
        requests=rate("roost_requests_total"),
        errors=sum(row.errors for row in _routes(before, now, seconds)),
        claims=rate("roost_claims_total", kind="claimed"),
        conflicts=rates_by("roost_conflicts_total", "cause"),
        retries=rate("roost_write_retries_total"),
        searches=rate("roost_candidate_answers_total", source="search"),
        kept_answers=rate("roost_candidate_answers_total", source="kept"),
        refreshes=rate("roost_forest_refreshes_total"),
        rebuilds=rate("roost_forest_rebuilds_total"),
        journal_rows=rate("roost_journal_rows_read_total"),
        journal_lag=max(0.0, wall_time - looked) if looked else None,
        routes=_routes(before, now, seconds),
        stages=rates_by("roost_stage_seconds_total", "stage"),
        classes=_classes(now),
    )


def _routes(before: Scrape | None, now: Scrape, seconds: float) -> list[RouteRow]:
    """The routes with requests, the busiest first."""
    requests: dict[tuple[str, str], float] = defaultdict(float)
    errors: dict[tuple[str, str], float] = defaultdict(float)
    for labels, grown in _grown(before, now, "roost_requests_total"):
        key = labels.get("route", ""), labels.get("method", "")
        requests[key] += grown
        if labels.get("status", "").startswith("5"):
            errors[key] += grown
    buckets: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for labels, grown in _grown(before, now, _DURATION):
        key = labels.get("route", ""), labels.get("method", "")
        buckets[key].append((float(labels.get("le", "nan")), grown))
    rows = [
        RouteRow(
            route,
            method,
            count / seconds,
            errors[route, method] / seconds,
            *(quantile(part, sorted(buckets[route, method])) for part in (0.5, 0.95, 0.99)),
        )
        for (route, method), count in requests.items()
        if count > 0
    ]
    return sorted(rows, key=lambda row: (-row.requests, row.route, row.method))


def _grown(before: Scrape | None, now: Scrape, name: str) -> list[tuple[dict[str, str], float]]:
    """How much each series has grown; all of it after a restart of the server."""
    earlier = {} if before is None else before.series.get(name, {})
    grown = []
    for pairs, value in now.series.get(name, {}).items():
        known = earlier.get(pairs, 0.0)
        grown.append((dict(pairs), value - known if value >= known else value))
    return grown


def quantile(part: float, buckets: Sequence[tuple[float, float]]) -> float | None:
    """The value below which this part of all values lies, from (bound, values up to it).

    >>> quantile(0.5, [(0.1, 10), (0.2, 20), (math.inf, 20)])
    0.1
    >>> quantile(0.75, [(0.1, 10), (0.2, 20), (math.inf, 20)])
    0.15
    """
    if not buckets or not buckets[-1][1]:
        return None
    wanted = part * buckets[-1][1]
    lower, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted:
            if math.isinf(bound) or count == below:
                return lower
            return round(lower + (bound - lower) * (wanted - below) / (count - below), 9)
        lower, below = bound, count
    return lower


def _classes(now: Scrape) -> list[ClassRow]:
    names = sorted(
        {labels["resource_class"] for labels, _ in now.samples("roost_resource_capacity")}
    )
    return [
        ClassRow(
            name,
            *(
                now.total(f"roost_resource_{field}", resource_class=name)
                for field in ("capacity", "used", "reserved")
            ),
        )
        for name in names
    ]
