"""Capturing a machine: the driver reads it, and a recorder keeps all that the driver reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from roost.client.drivers.linux.captures import Capture, CapturedPath, mask_ids, open_files
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.linux.files import Files, FileUnreadable
from roost.client.drivers.machine.values import MachineUnreadable

T = TypeVar("T")

_HEADING = """\
# What the linux driver of Roost reads of a machine: no names of hosts or users, no addresses of
# networks. Random digits replace serial numbers and other ids. The driver takes it as root=FILE.
"""


class Recorder(Files):
    """Reads from `files` and keeps all that it has read."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.has_own_mounts = files.has_own_mounts
        self._entries: dict[str, CapturedPath] = {}

    def has(self, path: str) -> bool:
        """Whether something exists at a path. The recorder keeps the path without content."""
        found = self._files.has(path)
        if found:
            self._entries.setdefault(path, CapturedPath("/"))
        return found

    def text(self, path: str) -> str | None:
        """The text of a file, which the recorder keeps."""
        text = self._ask(path, lambda: self._files.text(path))
        if text is not None:
            self._entries[path] = CapturedPath("=", text)
        return text

    def link(self, path: str) -> str | None:
        """The target of a link, which the recorder keeps."""
        target = self._ask(path, lambda: self._files.link(path))
        if target is not None:
            self._entries[path] = CapturedPath("->", target)
        return target

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """The names in a directory. The recorder keeps them without content."""
        names = self._ask(path, lambda: self._files.names(path, pattern))
        for name in names:
            self._entries.setdefault(f"{path}/{name}", CapturedPath("/"))
        return names

    def lines(self, path: str, *fields: str) -> tuple[str, ...]:
        """Lines of a file. The recorder keeps these lines only."""
        lines = self._ask(path, lambda: self._files.lines(path, *fields))
        self._add_lines(path, lines)
        return lines

    def column(self, path: str, index: int, pattern: str) -> tuple[str, ...]:
        """Words of a file. The recorder keeps these words only, each in its column."""
        words = self._ask(path, lambda: self._files.column(path, index, pattern))
        self._add_lines(path, [" ".join([*["-"] * index, word]) for word in words])
        return words

    def capture(self) -> Capture:
        """All that the recorder has kept so far."""
        return Capture(
            {
                path: entry
                for path, entry in self._entries.items()
                if entry.kind != "/"
                or not any(Capture.is_below(path, other) for other in self._entries)
            }
        )

    def _add_lines(self, path: str, lines: Iterable[str]) -> None:
        entry = self._entries.get(path)
        before = entry.text.split("\n") if entry is not None and entry.text else []
        text = "\n".join(dict.fromkeys([*before, *lines]))
        if text or entry is not None:
            self._entries[path] = CapturedPath("=", text)

    def _ask(self, path: str, question: Callable[[], T]) -> T:
        try:
            return question()
        except FileUnreadable as error:
            self._entries[path] = CapturedPath("!", error.reason)
            raise


def capture_machine(root: str = "/") -> str:
    """The text of a capture of the machine at `root`, without ids and what is unreadable."""
    recorder = Recorder(open_files(root))
    heading = _HEADING
    try:
        read_machine(recorder)
    except MachineUnreadable as error:
        heading += f"# The driver cannot describe this machine: {error}\n"
    return heading + mask_ids(recorder.capture()).written()
