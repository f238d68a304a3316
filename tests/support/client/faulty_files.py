"""The files of a machine, of which some vanish or cannot be read."""

from __future__ import annotations

from fnmatch import fnmatchcase

from roost.client.drivers.linux.captures import Capture
from roost.client.drivers.linux.files import Files, FileUnreadable


class FaultyFiles(Files):
    """The files of a capture.

    A file that vanishes does so between the listing of its directory and the reading of the file.
    An unreadable path is a file, a link or a directory. A device that is gone is still listed, but
    nothing is left of its directory.
    """

    def __init__(
        self,
        capture: Capture,
        *,
        vanished: frozenset[str] = frozenset(),
        unreadable: frozenset[str] = frozenset(),
        gone: frozenset[str] = frozenset(),
    ) -> None:
        self._capture = capture
        self._vanished = vanished
        self._unreadable = unreadable
        self._gone = gone
        self._names = _names_by_directory(capture)

    def has(self, path: str) -> bool:
        is_known = path in self._capture.entries or path in self._names
        return is_known and not self._is_gone(path)

    def text(self, path: str) -> str | None:
        return self._capture.text(path) if self._is_present(path) else None

    def link(self, path: str) -> str | None:
        return self._capture.link(path) if self._is_present(path) else None

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        found = self._names.get(path, set()) if self._is_present(path) else set()
        return tuple(sorted(name for name in found if fnmatchcase(name, pattern)))

    def _is_present(self, path: str) -> bool:
        if path in self._unreadable:
            raise FileUnreadable(path, "Input/output error")
        return path not in self._vanished and not self._is_gone(path)

    def _is_gone(self, path: str) -> bool:
        return any(path == each or Capture.is_below(each, path) for each in self._gone)


def _names_by_directory(capture: Capture) -> dict[str, set[str]]:
    """The names in each directory. A capture looks through all its paths for them."""
    names: dict[str, set[str]] = {}
    for path in capture.entries:
        while path:
            path, _, name = path.rpartition("/")  # noqa: PLW2901  # the loop climbs up
            names.setdefault(path, set()).add(name)
    return names
