"""The results of checks. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
