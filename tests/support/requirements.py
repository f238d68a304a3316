"""What a run must have, and what it has to do without."""

from __future__ import annotations

import os

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
