"""Captures: a text file with exactly the files of a machine that the driver reads.

Each line is a path and its content:

    /sys/devices/system/cpu/online = 0-127
    /sys/bus/pci/devices/0000:17:00.0/driver -> ../../../../bus/pci/drivers/vfio-pci
    /sys/bus/pci/devices/0000:18:00.0/class ! Input/output error
    /sys/block/sda/holders/dm-0/

These are, from the top: the text of a file, whose further lines are indented; a symbolic link; an
unreadable file and the reason; an entry of a directory that the driver does not open. A reader of
captures skips empty lines and lines that begin with `#`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Literal

from roost.client.drivers.linux.files import Directory, Files, FileUnreadable
from roost.client.drivers.machine.values import MachineUnreadable
from roost.client.errors import NotConfigured

LineMark = Literal["=", "->", "!", "/"]

_LINE = re.compile(r"(?P<path>/\S+?)(?:(?P<bare>/)| (?P<kind>=|->|!)(?: (?P<text>.*))?)")
_KINDS: dict[str | None, LineMark] = {"=": "=", "->": "->", "!": "!", None: "/"}
_INDENT = "    "

# What precedes an id tells the driver its kind, so it stays.
_IDS = {
    re.compile(r".*/wwid"): re.compile(r"(?:[a-z0-9]+\.)?"),
    re.compile(r".*/serial"): re.compile(r""),
    re.compile(r".*/dm/uuid"): re.compile(r"(?:part\d+-)?(?:[A-Za-z0-9]+-)?"),
}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SAYS = re.compile(r"[^0f-]")  # an id of zeros only is none
_DIGEST_BYTES = 8


@dataclass(slots=True)
class CapturedPath:
    """The content at one path: a text, a link, a reason or just a name."""

    kind: LineMark
    text: str = ""


@dataclass(slots=True)
class Capture(Files):
    """The files of a captured machine."""

    entries: dict[str, CapturedPath] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether the capture has a path, or paths below it."""
        return path in self.entries or any(self.is_below(path, other) for other in self.entries)

    def text(self, path: str) -> str | None:
        """The text of a file in the capture."""
        return self._look_up(path, "=")

    def link(self, path: str) -> str | None:
        """The target of a link in the capture."""
        return self._look_up(path, "->")

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """The names right below a path in the capture."""
        self._look_up(path, "/")
        start = len(path) + 1
        below = {
            found[start:].split("/")[0] for found in self.entries if self.is_below(path, found)
        }
        return tuple(sorted(name for name in below if fnmatchcase(name, pattern)))

    @staticmethod
    def is_below(path: str, other: str) -> bool:
        """Whether `other` is a path below `path`."""
        return other.startswith(f"{path}/")

    def _look_up(self, path: str, kind: LineMark) -> str | None:
        entry = self.entries.get(path)
        if entry is None:
            return None
        if entry.kind == "!":
            raise FileUnreadable(path, entry.text)
        return entry.text if entry.kind == kind else None

    def written(self) -> str:
        """The capture as text; `parse_capture` is the inverse."""
        return "".join(f"{_written(path, entry)}\n" for path, entry in self.entries.items())


def _written(path: str, entry: CapturedPath) -> str:
    if entry.kind == "/":
        return f"{path}/"
    first, *more = entry.text.split("\n")
    return "\n".join([f"{path} {entry.kind} {first}".rstrip(), *(_INDENT + line for line in more)])


def parse_capture(text: str, origin: str = "the capture") -> Capture:
    """The capture in a text; errors call it `origin`."""
    capture = Capture()
    last: CapturedPath | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(_INDENT) and last is not None:
            last.text += "\n" + line.strip()
            continue
        path, last = _parse_line(line.rstrip(), f"{origin}, line {number}")
        if path in capture.entries:
            raise MachineUnreadable(
                f"{origin}, line {number}: {path} is in an earlier line, too; remove one of them."
            )
        capture.entries[path] = last
    return capture


def _parse_line(line: str, place: str) -> tuple[str, CapturedPath]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise MachineUnreadable(
            f"{place}: expected '/path = contents', '/path -> target', '/path ! reason' or "
            f"'/path/', found {line[:60]!r}."
        )
    return match["path"], CapturedPath(_KINDS[match["kind"]], match["text"] or "")


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


def mask_ids(capture: Capture) -> Capture:
    """The capture with other ids: the same for the same id, and different for different ones."""
    key = token_bytes(16)
    return Capture(
        {
            _without_uuids(path, key): _masked(path, entry, key)
            for path, entry in capture.entries.items()
        }
    )


def _without_uuids(path: str, key: bytes) -> str:
    # The reader knows the directory of a file system by the hyphen in its name.
    return _UUID.sub(lambda match: f"uuid-{_digest(match[0], key)}", path)


def _masked(path: str, entry: CapturedPath, key: bytes) -> CapturedPath:
    if entry.kind == "->":
        return CapturedPath("->", _without_uuids(entry.text, key))
    return CapturedPath("=", _masked_text(path, entry.text, key)) if entry.kind == "=" else entry


def _masked_text(path: str, text: str, key: bytes) -> str:
    for paths, beginning in _IDS.items():
        if text and paths.fullmatch(path):
            kept = beginning.match(text)
            start = kept.end() if kept else 0
            return text[:start] + (_digest(text[start:], key) if _SAYS.search(text, start) else "0")
    return text


def _digest(text: str, key: bytes) -> str:
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES, key=key).hexdigest()
