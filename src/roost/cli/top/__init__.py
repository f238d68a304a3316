"""The command `roost top`, which shows what a server does, live."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace

import click
from rich.console import Console

from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.number_range import NumberRange
from roost.cli.top.screen import draw_summary
from roost.cli.top.summary import Summary, summarise
from roost.cli.watching import redraw, repeat
from roost.client.errors import PlacementError, UnreadableAnswer
from roost.client.placement.answers import refusal
from roost.client.scrape import Scrape
from roost.client.transport import PlacementRequest, Transport

_REQUEST = PlacementRequest("GET", "/metrics", repeatable=True)


@click.command(
    short_help="Show what a server does, live.",
    epilog="""\b
Examples:
  roost top
  roost top --url https://placement.example:8778 --interval 5
  roost top --once --json
""",
)
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
    """
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
    answer = transport.send(_REQUEST)
    if answer.status >= 500:
        raise refusal(PlacementError, "The server has no metrics now", answer)
    scrape = Scrape.of(answer.content.decode(errors="replace"), time.monotonic())
    if answer.status != 200 or "roost_build_info" not in scrape.series:
        raise UnreadableAnswer(
            f"GET /metrics was answered with {answer.status}, without metrics of Roost. "
            "Is this the address of a Roost server, with its prefix, and is [roost]metrics true?",
        )
    return scrape
