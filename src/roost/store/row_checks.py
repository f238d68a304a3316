"""Checks by one query each, which selects a name for each row that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Select

from roost.store.findings import Finding, Level

_EXAMPLES = 3


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
