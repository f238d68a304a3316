"""What an operator should know about a configuration: values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a concern matters."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILURE = "failure"


class ConcernKind(StrEnum):
    """What a concern is about."""

    UNKNOWN = "unknown"
    IGNORED = "ignored"
    DEPRECATED = "deprecated"
    DANGEROUS = "dangerous"
    UNUSABLE = "unusable"
    CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing to look at: what it is, and what to do."""

    kind: ConcernKind
    severity: Severity
    message: str


def exit_status(concerns: list[Concern], *, strict: bool) -> int:
    """0: nothing to mend, 1: warnings, 2: the configuration cannot be used.

    >>> note = Concern(ConcernKind.IGNORED, Severity.NOTE, "")
    >>> exit_status([note], strict=False), exit_status([note], strict=True)
    (0, 1)
    """
    severities = {concern.severity for concern in concerns}
    if Severity.FAILURE in severities:
        return 2
    return int(Severity.WARNING in severities or (strict and Severity.NOTE in severities))
