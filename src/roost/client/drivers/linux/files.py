"""The few questions that are asked of `/sys` and `/proc`, and their answers from a directory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from roost.client.drivers.machine.errors import MachineUnreadable

_Answer = TypeVar("_Answer")


class FileUnreadable(MachineUnreadable):
    """A file is there and cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}.")
        self.reason = reason


class Files(ABC):
    """Files of one machine by their absolute paths on it. What does not exist is no error."""

    @abstractmethod
    def text(self, path: str) -> str | None:
        """What a file says, without space around it; None if there is no such file."""

    @abstractmethod
    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as it says it; None if there is no such link."""

    @abstractmethod
    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """Whatever in a directory matches, sorted; nothing if there is no such directory."""

    def lines(self, path: str, *fields: str) -> tuple[str, ...]:
        """The distinct lines of a file of the form `field : value`, for these fields only.

        `/proc/cpuinfo` repeats itself for each CPU; what all say is wanted only once.
        """
        text = self.text(path) or ""
        wanted = (line for line in text.splitlines() if line.split(":")[0].strip() in fields)
        return tuple(dict.fromkeys(line.strip() for line in wanted))


class Directory(Files):
    """The files of a machine below a directory, which is `/` for the machine itself."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        """Read a file."""
        text = self._ask(path, lambda found: found.read_text(errors="replace"))
        return None if text is None else text.strip()

    def link(self, path: str) -> str | None:
        """Read a link."""
        return self._ask(path, lambda found: str(found.readlink()) if found.is_symlink() else None)

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """Read a directory."""
        found = self._ask(path, lambda found: [entry.name for entry in found.iterdir()])
        return tuple(sorted(name for name in found or () if fnmatchcase(name, pattern)))

    def _ask(self, path: str, question: Callable[[Path], _Answer]) -> _Answer | None:
        try:
            return question(self._root / path.lstrip("/"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FileUnreadable(path, error.strerror or str(error)) from error


def read_number(files: Files, path: str, *, base: int = 10, minimum: int = 0) -> int | None:
    """The number that a file consists of; None if there is no such file."""
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
    """The number that a file consists of which has to be there."""
    number = read_number(files, path, base=base)
    if number is None:
        raise MachineUnreadable(f"{path} is missing.")
    return number


def unexpected(path: str, expected: str, found: str) -> MachineUnreadable:
    """The error that says which file has something else in it than it should."""
    return MachineUnreadable(f"{path} should have {expected} in it, and has {found[:60]!r}.")
