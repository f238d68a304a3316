"""What a run must have, and what it has to do without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# What must be there: a run that passes without it has not shown enough.
REQUIRED = tuple(filter(None, os.environ.get("ROOST_TEST_REQUIRE", "").split(",")))

missing: dict[str, str] = {}
"""What is not there, and why; named again at the end of the run."""


def note_missing(name: str, reason: str) -> None:
    """Go on without it, or end the run if it must be there."""
    if name in REQUIRED:
        pytest.exit(f"{name} is required: {reason}", returncode=2)
    missing[name] = reason


def reference_environment() -> Path:
    """The virtual environment of the reference; a test skips where it is not installed."""
    prefix = Path(__file__).parents[2] / ".venv-reference"
    if not (prefix / ".installed").exists():
        note_missing("reference", f"not installed in {prefix}; `make test` does that")
        pytest.skip("the reference is not installed")
    return prefix
