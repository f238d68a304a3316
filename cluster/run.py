#!/usr/bin/env python3
"""Two servers on one database behind haproxy, under load, while one of them is killed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from rich.console import Console
from rich.table import Table

from databases import DatabaseError, open_databases
from faults import FAULTS, Outcome, complaints, watch_fault
from http_client import HttpClient, Records
from ledger import Ledger
from node import ClusterError
from pair import Pair, open_pair
from rates import measure_rates
from support.servers.haproxy import HaproxyError
from tenants import Crowd
from upgrade import run_upgrade
from versions import sync

_WIDTH = 120
PARTS = ("faults", "rates", "upgrade")


def main() -> int:
    """Run the parts that were asked for; the exit status is 1 if a promise was broken."""
    arguments = _arguments()
    console = Console(soft_wrap=True)
    wrongs: list[str] = []
    try:
        for kind in arguments.database or ["postgresql"]:
            for part in arguments.part or PARTS:
                console.print(f"\n[bold]{part}[/bold] on {kind}")
                wrongs += _run_part(part, kind, arguments, console)
    except (ClusterError, DatabaseError, HaproxyError) as error:
        console.print(f"The cluster cannot run: {error}", style="bold red", markup=False)
        return 2
    for wrong in wrongs:
        console.print(f"BROKEN: {wrong}", style="bold red", markup=False, soft_wrap=True)
    if not wrongs:
        console.print("\nEvery promise held.", style="bold green")
    return 1 if wrongs else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roost", type=Path, required=True, help="the roost command")
    parser.add_argument("--database", action="append", choices=("postgresql", "mariadb"))
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=5.0, help="before and after each fault")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--old", default="", help="git ref of the old version; default: last tag")
    return parser.parse_args()


def _run_part(part: str, kind: str, arguments: argparse.Namespace, console: Console) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="roost-cluster-") as name, ExitStack() as stack:
        directory = Path(name)
        url = stack.enter_context(open_databases(kind, directory, keep=False)).create().url
        if part == "upgrade":
            return run_upgrade(arguments, url, directory, console)
        sync([str(arguments.roost)], url)
        with open_pair([str(arguments.roost)], url, directory) as pair:
            console.print(f"haproxy asks GET {pair.health_path} for the health of each server")
            if part == "rates":
                rates = measure_rates(pair.proxy, pair.nodes[1].name, arguments.seconds)
                _show_rates(rates, console)
                return []
            return _run_faults(pair, arguments, console)


def _run_faults(pair: Pair, arguments: argparse.Namespace, console: Console) -> list[str]:
    records, ledger = Records(), Ledger()
    crowd = Crowd(pair.proxy.port, records, ledger, arguments.clients)
    wrongs: list[str] = []
    outcomes: list[Outcome] = []
    begin = time.monotonic()
    crowd.start()
    try:
        for number, fault in enumerate(FAULTS):
            node = pair.nodes[number % len(pair.nodes)]
            outcome = watch_fault(fault, node, pair.proxy, records, arguments.seconds)
            outcomes.append(outcome)
            wrongs += complaints(fault, outcome)
    finally:
        crowd.stop()
    _show_outcomes(outcomes, console)
    seconds = time.monotonic() - begin
    failed = sum(one.failed for one in records.sent)
    console.print(f"{len(records.sent)} requests in {seconds:.0f} s, {failed} failed")
    for node in pair.nodes:
        told = ledger.settle(HttpClient(node.port, Records()), node.name)
        console.print(f"server {node.name}: {_settled(ledger)}; in doubt: {dict(told)}")
    console.print(
        f"{ledger.reads_after_writes} reads of own writes, {ledger.crossed} of them on another "
        f"server than the write; {ledger.readings_of_the_beacon} readings that may not go back"
    )
    return wrongs + ([ledger.summary()] if ledger.wrongs else [])


def _settled(ledger: Ledger) -> str:
    return f"{len(ledger.held)} consumers and {len(ledger.providers)} providers compared"


def _show_outcomes(outcomes: Sequence[Outcome], console: Console) -> None:
    table = Table()
    table.add_column("")
    for one in outcomes:
        table.add_column(one.fault, justify="right")
    rows = [one.figures() for one in outcomes]
    for name in rows[0]:
        table.add_row(name, *(row[name] for row in rows))
    console.print(table, soft_wrap=False, width=_WIDTH)
    for one in outcomes:
        for problem, count in sorted(Counter(one.problems).items()):
            console.print(f"  {one.fault}: {count} x {problem}", markup=False, soft_wrap=True)


def _show_rates(rates: dict[str, tuple[float, float]], console: Console) -> None:
    for name, (one, two) in rates.items():
        console.print(f"{name}: {one:.0f}/s with one server, {two:.0f}/s with two: {two / one:.2f}")


if __name__ == "__main__":
    sys.exit(main())
