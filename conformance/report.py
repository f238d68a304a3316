"""The report: progress, a table for each kind of database, and the results as JSON."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from suite import Failure, FileResult


@dataclass(frozen=True)
class Count:
    """How many tests passed, failed and were skipped."""

    passed: int
    failed: int
    skipped: int

    @classmethod
    def of(cls, results: Iterable[FileResult]) -> Count:
        """Add up the results of files."""
        results = list(results)
        return cls(
            passed=sum(result.passed for result in results),
            failed=sum(result.failed for result in results),
            skipped=sum(result.skipped for result in results),
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed"


class Progress:
    """Prints a line for every file that is done."""

    def __init__(self, files: int) -> None:
        self.results: list[FileResult] = []
        self._files = files

    def add(self, result: FileResult) -> None:
        """Add and print the result of a file."""
        self.results.append(result)
        done = f"[{len(self.results):{len(str(self._files))}}/{self._files}]"
        print(
            f"{done} {result.file}: {Count.of([result])}, {result.seconds:.1f} s "
            f"(so far {Count.of(self.results)})",
            flush=True,
        )


def print_table(title: str, results: list[FileResult], *, verbose: bool) -> None:
    """Print a line for each file, its notes and, if verbose, every test that failed."""
    print(f"\n{title}")
    print(f"{'file':<50} passed failed skipped seconds")
    for result in sorted(results, key=lambda result: result.file):
        mark = "  <--" if result.failures else ""
        print(
            f"{result.file:<50} {result.passed:6} {result.failed:6} {result.skipped:7} "
            f"{result.seconds:7.1f}{mark}"
        )
        for note in result.notes:
            print(f"    note: {note}")
        if verbose:
            print_failures(result.failures)
    total = Count.of(results)
    seconds = sum(result.seconds for result in results)
    print(
        f"{'total':<50} {total.passed:6} {total.failed:6} {total.skipped:7} {seconds:7.1f}\n",
        flush=True,
    )


def print_failures(failures: list[Failure]) -> None:
    """Print failed tests; consecutive tests with the same reason print it once."""
    for reason, group in itertools.groupby(failures, key=lambda failure: failure.reason):
        for failure in group:
            request = f"  [{failure.request}: {failure.status}]" if failure.request else ""
            print(f"    FAILED {failure.test}{request}")
        print(textwrap.indent(reason, " " * 8))


def write_json(path: Path, server: str, results: dict[str, list[FileResult]]) -> None:
    """Write all results; the keys of `results` are the kinds of database."""
    total = Count.of(result for group in results.values() for result in group)
    document = {
        "server": server,
        **asdict(total),
        "databases": {
            kind: {
                **asdict(Count.of(group)),
                "files": [
                    {**asdict(result), "failed": result.failed}
                    for result in sorted(group, key=lambda result: result.file)
                ],
            }
            for kind, group in results.items()
        },
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
