"""The results of checks, and checks by one query each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Select

_EXAMPLES = 3


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and the remedy; empty if there is nothing to repair."""

    name: str
    level: Level
    message: str
    remedy: str = ""


def encoding_finding(found: str, wanted: str) -> Finding:
    """The finding about the character set of a database that has one for all columns."""
    if found == wanted:
        return Finding("character set", Level.OK, found)
    return Finding(
        "character set",
        Level.WARNING,
        f"the database has {found}, so it refuses names with other characters",
        f"Export the database and import it into one with {wanted}.",
    )


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A check by one query, which selects a name for each row that is wrong."""

    name: str
    level: Level
    wrong: Select[Any]
    problem: str
    remedy: str

    def run(self, connection: Connection) -> Finding:
        """The finding, with a few examples."""
        wrong = self.wrong.subquery()
        count = connection.scalar(sa.select(sa.func.count()).select_from(wrong)) or 0
        if not count:
            return Finding(self.name, Level.OK, "all rows are right")
        examples = connection.scalars(sa.select(wrong).limit(_EXAMPLES)).all()
        shown = ", ".join(str(example) for example in examples)
        more = ", ..." if count > len(examples) else ""
        return Finding(
            self.name, self.level, f"{self.problem}: {count} ({shown}{more})", self.remedy
        )
