"""The two histories: which revisions there are, in which order, and where a database says so.

Known without alembic, so that looking at a database that is up to date costs three queries.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class History:
    """One line of revisions, oldest first; no branches."""

    name: str
    version_table: str
    revisions: tuple[str, ...]

    @property
    def head(self) -> str:
        """The newest revision."""
        return self.revisions[-1]

    def knows(self, revision: str | None) -> bool:
        """Whether this revision is one of ours; none at all is the state before the first."""
        return revision is None or revision in self.revisions

    def newest(self, recorded: Collection[str]) -> str | None:
        """What a database is at that has these revisions recorded.

        One is usual. Two known ones are left when two processes migrated at once without a lock
        (see `lock.py`): then the newer holds. An unknown one holds over all.
        """
        unknown = sorted(revision for revision in recorded if not self.knows(revision))
        if unknown:
            return unknown[0]
        return max(recorded, key=self.revisions.index, default=None)


PLACEMENT = History(
    name="placement",
    version_table="alembic_version",
    revisions=(
        "b4ed3a175331",
        "611cd6dffd7b",
        "b5c396305c25",
        "422ece571366",
        "a082b8bb98d0",
    ),
)

ROOST = History(
    name="roost",
    version_table="roost_schema_version",
    revisions=("roost_0001",),
)

HISTORIES = (PLACEMENT, ROOST)
