"""Captures: one readable text file that has exactly what the reader reads of a machine.

A line is a path and what is there:

    /sys/devices/system/cpu/online = 0-127
    /sys/bus/pci/devices/0000:17:00.0/driver -> ../../../../bus/pci/drivers/vfio-pci
    /sys/bus/pci/devices/0000:18:00.0/class ! Input/output error
    /sys/block/sda/holders/dm-0/

that is: the contents of a file, of which further lines are indented; a symbolic link; something
that cannot be read, and why; something in a directory of which nothing more is known. Empty
lines and those that begin with `#` are for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from roost.client.drivers.linux.files import Directory, Files, FileUnreadable
from roost.client.drivers.machine.errors import MachineUnreadable
from roost.client.errors import NotConfigured

Kind = Literal["=", "->", "!", "/"]

_LINE = re.compile(r"(?P<path>/\S+?)(?:(?P<bare>/)| (?P<kind>=|->|!)(?: (?P<text>.*))?)")
_KINDS: dict[str | None, Kind] = {"=": "=", "->": "->", "!": "!", None: "/"}
_INDENT = "    "


@dataclass(slots=True)
class Entry:
    """What is at one path."""

    kind: Kind
    text: str = ""


@dataclass(slots=True)
class Capture(Files):
    """The files of a machine that somebody captured or wrote down."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """Look a file up."""
        return self._look_up(path, "=")

    def link(self, path: str) -> str | None:
        """Look a link up."""
        return self._look_up(path, "->")

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """What the paths of the capture have after this one."""
        self._look_up(path, "/")
        start = len(path) + 1
        below = {
            found[start:].split("/")[0] for found in self.entries if self.is_below(path, found)
        }
        return tuple(sorted(name for name in below if fnmatchcase(name, pattern)))

    @staticmethod
    def is_below(path: str, other: str) -> bool:
        """Whether the other path leads through this one."""
        return other.startswith(f"{path}/")

    def _look_up(self, path: str, kind: Kind) -> str | None:
        entry = self.entries.get(path)
        if entry is None:
            return None
        if entry.kind == "!":
            raise FileUnreadable(path, entry.text)
        return entry.text if entry.kind == kind else None

    def written(self) -> str:
        """The capture as text, from which `parse_capture` makes it again."""
        return "".join(f"{_written(path, entry)}\n" for path, entry in self.entries.items())


def _written(path: str, entry: Entry) -> str:
    if entry.kind == "/":
        return f"{path}/"
    first, *more = entry.text.split("\n")
    return "\n".join([f"{path} {entry.kind} {first}".rstrip(), *(_INDENT + line for line in more)])


def parse_capture(text: str, origin: str = "the capture") -> Capture:
    """Read a capture; `origin` is what an error calls it."""
    capture = Capture()
    last: Entry | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(_INDENT) and last is not None:
            last.text += "\n" + line.strip()
            continue
        path, last = _parse_line(line.rstrip(), f"{origin}, line {number}")
        if path in capture.entries:
            raise MachineUnreadable(f"{origin}, line {number}: {path} was there before.")
        capture.entries[path] = last
    return capture


def _parse_line(line: str, place: str) -> tuple[str, Entry]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise MachineUnreadable(
            f"{place}: expected '/path = contents', '/path -> target', '/path ! reason' or "
            f"'/path/', found {line[:60]!r}."
        )
    return match["path"], Entry(_KINDS[match["kind"]], match["text"] or "")


def open_files(root: str) -> Files:
    """The files of the machine at `root`: a directory that has `sys` and `proc`, or a capture."""
    path = Path(root)
    if path.is_dir():
        return Directory(path)
    try:
        return parse_capture(path.read_text(), origin=root)
    except (OSError, UnicodeDecodeError) as error:
        raise NotConfigured(
            f"Option root={root} of the linux driver is neither a directory nor a readable "
            f"capture: {error}."
        ) from error
