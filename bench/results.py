"""The tables that a run prints row by row, and the same rows as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO


@dataclass(frozen=True)
class Column:
    """One column: its title and the format of its numbers."""

    title: str
    form: str = ".2f"
    unit: str = ""
    room: int = 8

    @property
    def width(self) -> int:
        """Wide enough for the title and for usual numbers."""
        return max(len(self.title) + 1, self.room)

    def text(self, value: Any) -> str:
        """The value as text of the table."""
        if value is None:
            return "-"
        return str(value) if isinstance(value, str) else f"{value:{self.form}}{self.unit}"


def ratio(title: str) -> Column:
    """A column of ratios."""
    return Column(title, ",.1f", "x")


@dataclass(frozen=True)
class Table:
    """A kind of measurement: the title and the columns of its rows."""

    title: str
    columns: tuple[Column, ...]
    name_width: int = 46

    def header(self) -> str:
        """The title and the names of the columns."""
        names = "".join(f" {column.title:>{column.width}}" for column in self.columns)
        return f"\n{self.title}\n{'':{self.name_width}}{names}"

    def line(self, name: str, values: tuple[Any, ...]) -> str:
        """One row."""
        texts = "".join(
            f" {column.text(value):>{column.width}}"
            for column, value in zip(self.columns, values, strict=True)
        )
        return f"{name:{self.name_width}}{texts}"


@dataclass(frozen=True)
class Goal:
    """A bound for a number, and the number that was measured."""

    work: str
    measured: float
    bound: float
    more_is_better: bool
    unit: str

    @property
    def reached(self) -> bool:
        """Whether the measured number is within the bound."""
        if self.more_is_better:
            return self.measured >= self.bound
        return self.measured <= self.bound

    def values(self) -> tuple[str, str, str]:
        """The cells of the goal's row."""
        aim = "at least" if self.more_is_better else "at most"
        return (
            f"{aim} {self.bound:,g}{self.unit}",
            f"{self.measured:,.4g}{self.unit}",
            "yes" if self.reached else "NO",
        )


GOALS = Table(
    "Goals",
    (Column("goal", room=18), Column("measured", room=12), Column("reached")),
    name_width=72,
)


@dataclass
class Results:
    """Everything that a run has measured so far."""

    out: TextIO = sys.stdout
    goals: list[Goal] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _table: Table | None = None

    def add(self, table: Table, name: str, *values: Any) -> None:
        """Note and print one row, and the header before the first row of a table."""
        if table != self._table:
            self._table = table
            print(table.header(), file=self.out)
        print(table.line(name, values), file=self.out, flush=True)
        titles = (column.title for column in table.columns)
        cells = dict(zip(titles, values, strict=True))
        self._rows.append({"table": table.title, "name": name, **cells})

    def progress(self, text: str) -> None:
        """Print the current step to standard error, outside the tables."""
        print(f"  .. {text}", file=sys.stderr, flush=True)

    def failure(self, text: str) -> None:
        """Note and print a wrong answer."""
        self.failures.append(text)
        print(f"  !! {text}", file=self.out, flush=True)

    def at_least(self, work: str, measured: float, bound: float, unit: str = "x") -> None:
        """Add the goal that a number is at least the bound."""
        self.goals.append(Goal(work, measured, bound, more_is_better=True, unit=unit))

    def at_most(self, work: str, measured: float, bound: float, unit: str = "x") -> None:
        """Add the goal that a number is at most the bound."""
        self.goals.append(Goal(work, measured, bound, more_is_better=False, unit=unit))

    def summarise(self) -> None:
        """Print which goals were reached, and all wrong answers."""
        for goal in list(self.goals):
            self.add(GOALS, goal.work, *goal.values())
        for text in self.failures:
            print(f"WRONG: {text}", file=self.out, flush=True)

    def write_json(self, path: Path) -> None:
        """Write all rows."""
        everything = {"rows": self._rows, "failures": self.failures}
        path.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
