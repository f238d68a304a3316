"""The command `roost top`, which shows what a server does, live."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

import click
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from roost.cli.shared.command import command
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.parameters import NumberRange
from roost.cli.shared.terminal import plain
from roost.cli.shared.watching import redraw, repeat
from roost.client.errors import PlacementError, UnreadableAnswer
from roost.client.placement.answers import refusal
from roost.client.transport import PlacementRequest, Transport
from roost.model.text import own_lines

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?')
_ESCAPE = re.compile(r"\\(.)")

LabelPairs: TypeAlias = tuple[tuple[str, str], ...]

_DURATION_METRIC = "roost_request_duration_seconds_bucket"

_ROUTES_MAX = 15
_CLASSES_MAX = 12
_BAR_WIDTH = 16

_SCRAPE_REQUEST = PlacementRequest("GET", "/metrics", repeatable=True)


@dataclass(frozen=True, slots=True)
class Scrape:
    """The values of all series at one moment: by name, then by labels."""

    moment: float
    series: Mapping[str, Mapping[LabelPairs, float]]

    @classmethod
    def of(cls, text: str, moment: float) -> Scrape:
        """Read a text; lines that are no samples are ignored.

        >>> Scrape.of('up{job="a b"} 1\\nup 2\\n', 0.0).series
        {'up': {(('job', 'a b'),): 1.0, (): 2.0}}
        """
        series: dict[str, dict[LabelPairs, float]] = {}
        for line in text.splitlines():
            found = None if line.startswith("#") else _SAMPLE.fullmatch(line)
            if found is None:
                continue
            name, labels, value = found.groups()
            try:
                number = float(value)
            except ValueError:
                continue
            series.setdefault(name, {})[_pairs(labels or "")] = number
        return cls(moment, series)

    def samples(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        """The labels and the value of each series of this name."""
        for pairs, value in self.series.get(name, {}).items():
            yield dict(pairs), value

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of this name that have these labels."""
        wanted = labels.items()
        return sum(value for found, value in self.samples(name) if wanted <= found.items())


def _pairs(text: str) -> LabelPairs:
    return tuple((name, _ESCAPE.sub(_unescaped, value)) for name, value in _LABEL.findall(text))


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


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
    for labels, grown in _grown(before, now, _DURATION_METRIC):
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


def draw_summary(summary: Summary, where: str) -> RenderableType:
    """All tables of a summary."""
    return Group(
        _header(summary, where),
        _work(summary),
        Text(),
        _route_table(summary),
        Text(),
        _class_table(summary),
    )


def _header(summary: Summary, where: str) -> Text:
    line = plain(f"Roost {summary.version}", "bold")
    line.append_text(
        plain(
            f" at {where}: {summary.workers} workers, {summary.memory_bytes / 2**20:,.0f} MiB, "
            f"{summary.cpu * 100:.0f} % CPU, {summary.connections:.0f} connections, "
            f"{summary.in_flight:.0f} requests in flight, {summary.providers:,.0f} providers",
            "not bold",
        )
    )
    return line


def _work(summary: Summary) -> Text:
    lag = "-" if summary.journal_lag is None else f"{summary.journal_lag:.1f} s"
    conflicts = ", ".join(f"{cause} {rate:.1f}" for cause, rate in summary.conflicts.items())
    stages = ", ".join(f"{name} {spent * 1000:.1f}" for name, spent in summary.stages.items())
    lines = [
        f"requests {summary.requests:,.1f}/s   errors {summary.errors:.1f}/s   "
        f"claims {summary.claims:,.1f}/s   retries {summary.retries:.1f}/s   "
        f"conflicts/s: {conflicts or 'none'}",
        f"searches {summary.searches:,.1f}/s   kept answers {summary.kept_answers:,.1f}/s   "
        f"refreshes {summary.refreshes:.1f}/s   rebuilds {summary.rebuilds:.2f}/s   "
        f"journal {summary.journal_rows:.1f} rows/s, lag {lag}",
        f"ms a second in stages: {stages or 'none'}",
    ]
    style = "red" if summary.errors else ""
    return plain(own_lines(*lines), style)


def _route_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column("route", no_wrap=True)
    for title in ("requests/s", "errors/s", "p50 ms", "p95 ms", "p99 ms"):
        table.add_column(title, justify="right")
    for row in summary.routes[:_ROUTES_MAX]:
        table.add_row(
            plain(f"{row.method} {row.route}"),
            f"{row.requests:,.1f}",
            plain(f"{row.errors:.1f}", "red" if row.errors else ""),
            *(_milliseconds(value) for value in (row.p50, row.p95, row.p99)),
        )
    return table


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.2f}"


def _class_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column("resource class", no_wrap=True)
    table.add_column("", width=_BAR_WIDTH)
    for title in ("used", "capacity", "reserved"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in summary.classes[:_CLASSES_MAX]:
        part = row.used / row.capacity if row.capacity > 0 else 0.0
        table.add_row(
            plain(row.name),
            ProgressBar(total=1.0, completed=min(part, 1.0), width=_BAR_WIDTH),
            f"{row.used:,.0f}",
            f"{row.capacity:,.0f}",
            f"{row.reserved:,.0f}",
        )
    return table


@command()
@click.option(
    "--interval",
    metavar="SECONDS",
    type=NumberRange(0.1, 3600),
    default=2.0,
    show_default=True,
    help="Time between two pictures, over which rates are averages.",
)
@click.option("--once", is_flag=True, help="Show one interval, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each interval.")
@connection_options
def top(*, connection: ConnectionSettings, interval: float, once: bool, as_json: bool) -> None:
    """Show requests, latencies, claims, conflicts, the journal and capacity of a server.

    It reads /metrics, which needs no token. Press q to end it.

    \b
    Examples:
      roost top
      roost top --url https://placement.example:8778 --interval 5
      roost top --once --json
    """
    connection = connection.resolved()
    given = connection.token or connection.token_file or os.environ.get("ROOST_TOKEN")
    if connection.url is not None and given is None:
        # Some token must be there for another machine, and /metrics does not look at it.
        connection = replace(connection, token="none")
    where = connection.url or os.environ.get("ROOST_URL") or "this address"
    with connection.open() as transport:
        before = _scrape(transport)
        intervals = _Intervals(transport, before)
        if once:
            time.sleep(interval)
            _print(intervals.next(), where, as_json=as_json)
        elif as_json or not Console().is_terminal:
            repeat(lambda: _print(intervals.next(), where, as_json=as_json), interval)
        else:
            # The first picture shows averages since the start of the server, at once.
            first = draw_summary(summarise(None, before, time.time()), where)
            redraw(first, lambda: draw_summary(intervals.next(), where), interval)


class _Intervals:
    """The summaries of one interval after another; one that was lost makes the next longer."""

    def __init__(self, transport: Transport, before: Scrape) -> None:
        self._transport = transport
        self._before = before

    def next(self) -> Summary:
        """What the server did since the last scrape that it answered."""
        now = _scrape(self._transport)
        summary = summarise(self._before, now, time.time())
        self._before = now
        return summary


def _print(summary: Summary, where: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        Console(highlight=False).print(draw_summary(summary, where))


def _scrape(transport: Transport) -> Scrape:
    answer = transport.send(_SCRAPE_REQUEST)
    if answer.status >= 500:
        raise refusal(PlacementError, "The server has no metrics now", answer)
    scrape = Scrape.of(answer.content.decode(errors="replace"), time.monotonic())
    if answer.status != 200 or "roost_build_info" not in scrape.series:
        raise UnreadableAnswer(
            f"GET /metrics was answered with {answer.status}, without metrics of Roost. "
            "Is this the address of a Roost server, with its prefix, and is [roost]metrics true?",
        )
    return scrape
