"""Files that all processes of a run share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def run_directory(factory: pytest.TempPathFactory) -> Path:
    """The directory of a run, which is above those of its processes."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(path: Path, make: Callable[[Path], None]) -> Path:
    """A file that the first process to ask makes; further processes wait for it."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            half = path.with_suffix(".half")
            make(half)
            half.rename(path)
    return path
