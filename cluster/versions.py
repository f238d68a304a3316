"""Versions of Roost: the installed one, and the source of an earlier commit."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from node import ClusterError

_REPOSITORY = Path(__file__).resolve().parent.parent
_PROGRAM = "import sys; sys.argv[0] = 'roost'; from roost.cli.main import main; main()"


def sync(command: list[str], database_url: str, **environment: str) -> None:
    """Run `roost db sync` of a version."""
    done = subprocess.run(
        [*command, "db", "sync", "--db", database_url],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"roost db sync failed: {done.stdout}{done.stderr}")


def last_tag() -> str:
    """The newest tag before this commit; empty if there is none."""
    return _git("describe", "--tags", "--abbrev=0").strip()


def unpack(ref: str, directory: Path) -> tuple[list[str], dict[str, str]]:
    """The command of an earlier version and its environment; it runs with today's libraries."""
    archive = subprocess.run(
        ["git", "-C", str(_REPOSITORY), "archive", ref, "src"], capture_output=True, check=False
    )
    if archive.returncode:
        raise ClusterError(f"git has no version {ref!r}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as source:
        source.extractall(directory, filter="data")
    return [sys.executable, "-c", _PROGRAM], {"PYTHONPATH": str(directory / "src")}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(_REPOSITORY), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""
