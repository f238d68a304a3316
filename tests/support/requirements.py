"""What a run has, what it lacks, and what it must not lack.

The processes of a run each keep a `Run`; at its end, the first process hears of all of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# A run that passes without these has not shown enough.
REQUIRED = tuple(filter(None, os.environ.get("ROOST_TEST_REQUIRE", "").split(",")))


@dataclass
class Run:
    """The databases that tests have used, and what was not there, with the reason."""

    databases: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)

    def as_output(self) -> dict[str, Any]:
        """The same in plain values, which one process can send to another."""
        return {"databases": sorted(self.databases), "missing": self.missing}

    def add(self, output: dict[str, Any]) -> None:
        """Add what another process of the run has used and missed."""
        self.databases.update(output["databases"])
        self.missing.update(output["missing"])

    def end_if_incomplete(self) -> None:
        """End the run if it lacks something that is required."""
        for name in REQUIRED:
            if name in self.missing:
                pytest.exit(f"{name} is required: {self.missing[name]}", returncode=2)


run = Run()


def note_missing(name: str, reason: str) -> None:
    """Go on without it, or end the run if it is required."""
    run.missing[name] = reason
    run.end_if_incomplete()


def reference_environment() -> Path:
    """The virtual environment of the reference; the test is skipped where there is none."""
    return _environment("reference", "make test")


def keystone_environment() -> Path:
    """The virtual environment of Keystone; the test is skipped where there is none."""
    return _environment("keystone", "make test")


def nova_environment() -> Path:
    """The virtual environment of Nova; the test is skipped where there is none."""
    return _environment("nova", "make test-long")


def _environment(name: str, made_by: str) -> Path:
    prefix = Path(__file__).parents[2] / f".venv-{name}"
    if not (prefix / ".installed").exists():
        note_missing(name, f"not installed in {prefix}; `{made_by}` does that")
        pytest.skip(f"{name} is not installed")
    return prefix
