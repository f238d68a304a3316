"""Captured machines; `drawing` shows the trees that a driver declares for them."""

from __future__ import annotations

from pathlib import Path

from roost.client.drivers.linux.captures import Capture, parse_capture
from roost.testing import drawing

__all__ = ["CAPTURES", "captured", "drawing", "unpack"]

CAPTURES = Path(__file__).parents[2] / "client" / "captures"


def captured(name: str) -> Capture:
    """One of the machines in `tests/client/captures`."""
    return parse_capture((CAPTURES / f"{name}.txt").read_text(), origin=name)


def unpack(capture: Capture, root: Path) -> None:
    """Write the files of a capture below a directory; the driver takes it as `root`.

    Unreadable files become empty, because root can read all files.
    """
    for name, entry in sorted(capture.entries.items()):
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "->":
            path.symlink_to(entry.text)
            if any(Capture.is_below(name, other) for other in capture.entries):
                path.resolve().mkdir(parents=True, exist_ok=True)
        elif entry.kind == "/":
            path.mkdir(exist_ok=True)
        else:
            path.write_text(entry.text + "\n" if entry.kind == "=" else "")
