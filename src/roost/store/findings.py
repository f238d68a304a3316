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
