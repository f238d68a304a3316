"""Reading files of `/sys` and `/proc`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from roost.client.drivers.machine.values import MachineUnreadable

T = TypeVar("T")


class FileUnreadable(MachineUnreadable):
    """A file exists, but reading it fails."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}.")
        self.reason = reason


class Files(ABC):
    """The files of one machine by their absolute paths. A missing file is no error."""

    @abstractmethod
    def text(self, path: str) -> str | None:
        """The text of a file without space around it; `None` if the file does not exist."""

    @abstractmethod
    def link(self, path: str) -> str | None:
        """The target of a symbolic link, unresolved; `None` if the link does not exist."""

    @abstractmethod
    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """The sorted names in a directory that match; none if the directory does not exist."""

    def lines(self, path: str, *fields: str) -> tuple[str, ...]:
        """The distinct lines of a file of the form `field : value`, for these fields only.

        `/proc/cpuinfo` repeats most lines for each CPU.
        """
        text = self.text(path) or ""
        wanted = (line for line in text.splitlines() if line.split(":")[0].strip() in fields)
        return tuple(dict.fromkeys(line.strip() for line in wanted))


class Directory(Files):
    """The files of a machine below a directory, which is `/` for this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        """The text of a file below the directory."""
        text = self._ask(path, lambda found: found.read_text(errors="replace"))
        return None if text is None else text.strip()

    def link(self, path: str) -> str | None:
        """The target of a link below the directory."""
        return self._ask(path, lambda found: str(found.readlink()) if found.is_symlink() else None)

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """The names in a directory below the directory."""
        found = self._ask(path, lambda found: [entry.name for entry in found.iterdir()])
        return tuple(sorted(name for name in found or () if fnmatchcase(name, pattern)))

    def _ask(self, path: str, question: Callable[[Path], T]) -> T | None:
        try:
            return question(self._root / path.lstrip("/"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FileUnreadable(path, error.strerror or str(error)) from error


def read_number(files: Files, path: str, *, base: int = 10, minimum: int = 0) -> int | None:
    """The number in a file; `None` if the file does not exist."""
    text = files.text(path)
    if text is None:
        return None
    try:
        number = int(text, base)
    except ValueError:
        raise unexpected(path, "a number", text) from None
    if number < minimum:
        raise unexpected(path, f"a number of {minimum} or more", text)
    return number


def required_number(files: Files, path: str, *, base: int = 10) -> int:
    """The number in a file that must exist."""
    number = read_number(files, path, base=base)
    if number is None:
        raise MachineUnreadable(f"{path} is missing.")
    return number


def unexpected(path: str, expected: str, found: str) -> MachineUnreadable:
    """The error for a file whose content is not as expected."""
    return MachineUnreadable(f"{path} should contain {expected}, but contains {found[:60]!r}.")
