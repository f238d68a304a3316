"""A file that is replaced in full or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

DRAFT = ".new"
"""The end of the name of a draft. A process that dies leaves its draft behind."""


def replace_text(path: Path, text: str, *, mode: int = 0o600, durable: bool = False) -> None:
    """Replace the text of a file; a `durable` one survives a loss of power."""
    # The name of the draft is random, so another user cannot put a link in its place.
    handle, draft = tempfile.mkstemp(DRAFT, f"{path.stem}-", path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        # The draft would keep a full disk full.
        with suppress(OSError):
            os.unlink(draft)
        raise
    if durable:
        _make_names_durable(path.parent)


def _make_names_durable(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
