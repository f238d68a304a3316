#!/usr/bin/env python3
"""Measure Roost, the reference, and a server of static bytes, on the same data."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import tempfile
import time
from pathlib import Path

# The modules of servers and databases are in conformance/, stubs in tests/. Modules of bench/ come
# first.
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "conformance"))

from results import Results
from scenarios import QUICK, SCENARIOS
from stage import Stage

QUIET_LOAD = 0.5
"""A load average up to this, before the run adds its own, leaves the numbers a second alone."""


def main() -> None:
    """Measure; exit with 1 if any answer was wrong."""
    arguments = _arguments()
    names = _selected(arguments.only, arguments.quick)
    results = Results()
    load, started = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as directory:
        stage = Stage(
            Path(directory),
            arguments.roost.absolute(),
            results,
            workers=arguments.workers,
            rounds=arguments.rounds or (2 if arguments.quick else 5),
            quick=arguments.quick,
            compare_large=arguments.compare_large,
        )
        try:
            for name in names:
                SCENARIOS[name](stage)
        finally:
            stage.close()
    results.summarise()
    print(f"\n{time.monotonic() - started:.0f} s; load of the machine before the run: {load:.1f}")
    if load > QUIET_LOAD:
        print(
            "Other programs used the machine: numbers a second, and ratios of them, prove nothing."
        )
    if arguments.json:
        results.write_json(arguments.json)
    sys.exit(1 if results.failures else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"Scenarios: {', '.join(SCENARIOS)}."
    )
    parser.add_argument("--roost", type=Path, default=Path(".venv/bin/roost"))
    parser.add_argument("--quick", action="store_true", help="a small selection, fewer turns")
    parser.add_argument(
        "--only", action="append", metavar="GLOB", help="only these scenarios; may be repeated"
    )
    parser.add_argument("--workers", type=int, default=2, help="worker processes of Roost")
    parser.add_argument("--rounds", type=int, help="turns of each server (default: 5; quick: 2)")
    parser.add_argument(
        "--compare-large",
        action="store_true",
        help="compare answers with the reference's on 10,000 hosts too, which takes minutes",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    return parser.parse_args()


def _selected(globs: list[str] | None, quick: bool) -> list[str]:
    if globs is None:
        return list(QUICK if quick else SCENARIOS)
    names = [name for name in SCENARIOS if any(fnmatch.fnmatch(name, glob) for glob in globs)]
    if not names:
        raise SystemExit(
            f"no scenario matches --only {', '.join(globs)}; choose from {', '.join(SCENARIOS)}"
        )
    return names


if __name__ == "__main__":
    main()
