"""What `roost tree apply` and `roost tree diff` print: changes, what was kept, and failures."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import click

from roost.cli.terminal import echo_above_bar, echo_line
from roost.client.ownership.declarative_reporter import Report
from roost.client.ownership.tree_application import AppliedTree
from roost.model.text import counted, done_or_planned

_AGAIN = "the server may have carried it out. Apply the file again to find out"


@dataclass(slots=True)
class ApplyResults:
    """Prints each tree as it comes, or all trees at the end as one JSON value; counts them.

    A driver that edits the tree itself has no owner.
    """

    owner: str | None
    total: int
    dry_run: bool
    as_json: bool
    done: int = 0
    changes: int = 0
    kept: int = 0
    is_different: bool = False
    failed: list[AppliedTree] = field(default_factory=list)
    _printed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def not_begun(self) -> int:
        """The number of trees that the command has not come to."""
        return self.total - self.done - len(self.failed)

    def take(self, applied: AppliedTree) -> None:
        """Count a tree, and print its changes."""
        if applied.report is None:
            self.failed.append(applied)
            return
        self.take_report(applied.tree.name, applied.report)

    def take_report(self, name: str, report: Report) -> None:
        """Count the tree of this name, and print what was reported of it."""
        self.done += 1
        self._print(name, report)

    def finish(self) -> None:
        """Print the JSON value, the failures and the sums."""
        if self.as_json:
            click.echo(json.dumps(self._as_json(), indent=2))
        else:
            made = done_or_planned("made", planned=self.dry_run)
            by = "" if self.owner is None else f", as owner {self.owner}"
            echo_line(f"{counted(self.changes, 'change')} {made}{by}", err=True)
        if self.kept:
            what = counted(self.kept, "part")
            echo_line(f"{what} of the declaration cannot be made true: see `kept`", err=True)
        for applied in self.failed:
            # Such an error ends the command, which prints it once.
            if not applied.ends_all:
                echo_line(_failure_line(applied), err=True)
        if self.not_begun:
            echo_line(f"{counted(self.not_begun, 'tree')} not begun", err=True)
        if self.failed:
            echo_line(f"{len(self.failed)} of {counted(self.total, 'tree')} failed", err=True)

    def _print(self, name: str, report: Report) -> None:
        lines = report.difference.lines(planned=self.dry_run)
        self.changes += len(lines)
        self.kept += len(report.kept)
        self.is_different |= bool(report.difference)
        if self.as_json:
            difference = report.difference.as_json()
            # Thousands of reports would need much more memory than what is printed of them.
            self._printed.append(
                {"tree": name, "difference": difference, "kept": list(report.kept)}
            )
            return
        kept = done_or_planned("kept", planned=self.dry_run)
        for line in (*lines, *(f"{kept}: {line}" for line in report.kept)):
            echo_above_bar(line)

    def _as_json(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            "dry_run": self.dry_run,
            "trees": self._printed,
            "failures": [
                {
                    "tree": applied.tree.name,
                    "error": str(applied.error),
                    "outcome": "unknown" if applied.is_unknown else "failed",
                }
                for applied in self.failed
            ],
            "not_begun": self.not_begun,
        }


def _failure_line(applied: AppliedTree) -> str:
    # Sentences of servers have line feeds.
    reason = " ".join(str(applied.error).split())
    if applied.is_unknown:
        return f"unknown: {applied.tree.name}: {reason}; {_AGAIN}"
    return f"failed: {applied.tree.name}: {reason}"
