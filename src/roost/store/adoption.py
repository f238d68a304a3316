"""Whether Roost can take over a database, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roost.store.errors import SYNC_COMMAND
from roost.store.findings import Finding, Level
from roost.store.schema import SchemaState, SchemaStatus


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the database can be adopted, and a sentence that says what to do."""

    adoptable: bool
    sentence: str


def judge(status: SchemaStatus, findings: Iterable[Finding]) -> Verdict:
    """The verdict about a database with these findings."""
    failures = [finding.name for finding in findings if finding.level is Level.FAILURE]
    if failures:
        found = ", ".join(failures)
        if status.state is SchemaState.CURRENT:
            return Verdict(False, f"Roost has adopted this database, but rows are wrong: {found}.")
        return Verdict(
            False, f"Roost cannot adopt this database yet. Mend first what these say: {found}."
        )
    if status.state is SchemaState.EMPTY:
        return Verdict(True, f"The database is empty. Initialise it with: {SYNC_COMMAND}")
    if status.state is SchemaState.OLDER:
        return Verdict(
            True,
            f"Roost can adopt this database in place. Stop the services that write to it, and "
            f"run: {SYNC_COMMAND}",
        )
    return Verdict(True, "Roost has adopted this database. Nothing is to be done.")
