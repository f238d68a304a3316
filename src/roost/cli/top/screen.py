"""The picture of a summary in a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from roost.cli.terminal import plain
from roost.cli.top.summary import Summary
from roost.model.text import own_lines

_ROUTES_MAX = 15
_CLASSES_MAX = 12
_BAR_WIDTH = 16


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
