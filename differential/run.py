#!/usr/bin/env python3
"""Ask Roost and the reference the same random questions about the same random clouds."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from rich.console import Console
from rich.table import Table

from attribution import SAME, Case, Unexplained, verdict
from databases import open_databases
from server import Program, Server, reference, roost
from sides import Oracle, Reply, Service, Side
from support.scenarios.answers import describe
from support.scenarios.cloud import Cloud, Write
from support.scenarios.requests import Request
from support.scenarios.scenario import Scenario, Step, drawing, play_scenarios, query_text, readable

# Requests in a round of a scenario. Making a cloud in the reference takes longer than asking.
REQUESTS = 8
MEANINGS = {
    "D1": "amounts leak between groups (compared with group_policy=none instead)",
    "D2": "an unsuffixed solution is kept for one of its anchors only",
    "D3": "500 for a sharing child",
    "D6": "look-alikes below 1.34",
    "D7": "500 for huge amounts",
    "D8": "the first of two values is not validated",
    "D11": "unknown names are not always found",
    "8.2": "below 1.29, summaries of candidates that the limit cut off",
}


@dataclass
class Run:
    """Both sides, and the counts so far."""

    console: Console
    ours: Side
    theirs: Side
    counts: Counter[str] = field(default_factory=Counter)
    clouds: int = 0
    writes: int = 0
    # The report of the last unexplained difference.
    report: str = ""

    def play(self, scenario: Scenario) -> None:
        """Play a scenario on both sides. An unexplained difference raises `Unexplained`."""
        cloud = Cloud()
        self.clouds += 1
        try:
            for number, step in enumerate(scenario.steps):
                if isinstance(step, Request):
                    self._compare(cloud, step, scenario.steps[:number])
                    continue
                cloud = step.apply(cloud)
                self.writes += 1
                for side in (self.ours, self.theirs):
                    try:
                        side.write(step)
                    except AssertionError as error:
                        self._note(f"{side.name} refused a write: {error}\n{scenario}")
                        raise
        finally:
            for side in (self.ours, self.theirs):
                side.clear(cloud)

    def _compare(self, cloud: Cloud, request: Request, before: Sequence[Step]) -> None:
        ours, theirs = self.ours.reply(request), self.theirs.reply(request)
        world = cloud.world()
        try:
            found = verdict(Case(world, request, ours, theirs, self.theirs.reply))
        except Unexplained as error:
            writes = [str(step) for step in before if isinstance(step, Write)]
            lines = [
                f"the world:   {drawing(world)}",
                f"the request: {query_text(request)}",
                f"  {request.path}",
                f"the difference: {error}",
                f"{self.ours.name}: {_told(ours)}",
                f"{self.theirs.name}: {_told(theirs)}",
                "after the writes:",
                *writes,
            ]
            self._note("\n".join(lines))
            raise
        if found == SAME:
            kind = ", not empty" if ours.found and ours.found.candidates else ", empty"
            found += kind if ours.status == 200 else ", refused"
        self.counts[found] += 1

    def _note(self, report: str) -> None:
        if not self.report:
            self.console.print("a difference; looking for the shortest scenario with it ...")
        self.report = readable(report)

    def table(self) -> Table:
        """The counts as a table."""
        table = Table(title=f"{self.ours.name} and {self.theirs.name}", title_justify="left")
        table.add_column("answers")
        table.add_column("requests", justify="right")
        table.add_column("", style="dim")
        for name, count in sorted(self.counts.items()):
            table.add_row(name, str(count), MEANINGS.get(name, ""))
        table.add_section()
        table.add_row("requests", str(self.counts.total()))
        table.add_row("writes", str(self.writes))
        table.add_row("clouds", str(self.clouds))
        return table


def _told(reply: Reply) -> str:
    if reply.found is None:
        return f"{reply.status} {reply.text}"
    return f"{reply.status} with {len(reply.found.candidates)}{describe(reply.found.candidates)}"


def play_until(run: Run, deadline: float, first_seed: int) -> bool:
    """Play scenarios until the time is over, and return whether all differences were explained."""
    number = first_seed
    while time.monotonic() < deadline:
        try:
            play_scenarios(number, run.play, asked=REQUESTS)
        except AssertionError:
            run.console.print(f"\nseed {number}: not explained", style="bold red")
            run.console.print(run.report, markup=False, highlight=False, soft_wrap=True)
            return False
        left = max(0.0, deadline - time.monotonic())
        explained = sum(its for name, its in run.counts.items() if not name.startswith(SAME))
        run.console.print(
            f"seed {number}: {run.clouds} clouds, {run.counts.total()} requests, "
            f"{explained} explained differences, {left / 60:.1f} minutes left",
            highlight=False,
            soft_wrap=True,
        )
        number += 1
    return True


def start(stack: ExitStack, program: Program, directory: Path, kind: str) -> Service:
    """Start a service on an empty database of its own."""
    home = directory / program.name
    databases = stack.enter_context(open_databases(kind, home, keep=False))
    options = {"placement_database": {"sqlite_synchronous": "false"}}
    server = stack.enter_context(Server(program, databases.create(), home, options, {}))
    return Service(program.name, server.port)


def main() -> int:
    """Compare until the time is over or a difference is unexplained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roost", type=Path, default=Path(".venv/bin/roost"))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first scenarios")
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="compare the exhaustive search of the tests with the reference, without Roost",
    )
    arguments = parser.parse_args()
    console = Console()
    with (
        tempfile.TemporaryDirectory(prefix="roost-differential-") as name,
        ExitStack() as stack,
    ):
        directory = Path(name)
        theirs = start(stack, reference(), directory, "sqlite")
        ours = (
            Oracle()
            if arguments.oracle
            else start(stack, roost(arguments.roost.resolve()), directory, "sqlite")
        )
        run = Run(console, ours, theirs)
        deadline = time.monotonic() + 60 * arguments.minutes
        try:
            good = play_until(run, deadline, arguments.seed)
        finally:
            console.print(run.table())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
