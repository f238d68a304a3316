"""Reading files of `/sys` and `/proc`."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable
from fnmatch import fnmatchcase
from os import strerror
from pathlib import Path
from typing import TypeVar

from roost.client.drivers.machine.values import MachineUnreadable

T = TypeVar("T")

# A device answers so if it has no value for an attribute, which then never is readable.
_NO_VALUE = frozenset(strerror(code) for code in (errno.EINVAL, errno.ENXIO, errno.EOPNOTSUPP))


class FileUnreadable(MachineUnreadable):
    """A file exists, but reading it fails."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}.")
        self.reason = reason


class Files(ABC):
    """The files of one machine by their absolute paths. A missing file is no error."""

    has_own_mounts = True
    """Whether `/proc/self` has the mounts of the machine, and not those of a container."""

    @abstractmethod
    def has(self, path: str) -> bool:
        """Whether something exists at a path, readable or not."""

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

    def column(self, path: str, index: int, pattern: str) -> tuple[str, ...]:
        """The distinct words in one column of a file that exists, if they match.

        `/proc/self/mountinfo` has names of hosts and users in its remaining columns.
        """
        text = self.text(path)
        if text is None:
            raise _vanished(path)
        rows = [line.split() for line in text.splitlines()]
        words = (row[index] for row in rows if len(row) > index)
        return tuple(dict.fromkeys(word for word in words if fnmatchcase(word, pattern)))


class Directory(Files):
    """The files of a machine below a directory, which is `/` for this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.has_own_mounts = root == Path("/")

    def has(self, path: str) -> bool:
        """Whether something exists at a path below the directory."""
        try:
            return self._ask(path, lambda found: found.lstat()) is not None
        except FileUnreadable:
            return True

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


class WithoutSysfs(Files):
    """The files of a machine without those below `/sys`."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def has(self, path: str) -> bool:
        """Whether something exists at a path."""
        return not self._is_hidden(path) and self._files.has(path)

    def text(self, path: str) -> str | None:
        """The text of a file."""
        return None if self._is_hidden(path) else self._files.text(path)

    def link(self, path: str) -> str | None:
        """The target of a link."""
        return None if self._is_hidden(path) else self._files.link(path)

    def names(self, path: str, pattern: str = "*") -> tuple[str, ...]:
        """The names in a directory."""
        return () if self._is_hidden(path) else self._files.names(path, pattern)

    @staticmethod
    def _is_hidden(path: str) -> bool:
        return path.startswith("/sys/")


def read_whole(files: Files, path: str) -> str | None:
    """The text of a file, which may be empty; `None` if the file does not exist.

    A file that vanishes meanwhile is an error, because its absence decides nothing.
    """
    if not files.has(path):
        return None
    text = files.text(path)
    if text is None:
        raise _vanished(path)
    return text


def read_text(files: Files, path: str) -> str | None:
    """The same; an empty file counts as missing."""
    return read_whole(files, path) or None


def read_value(files: Files, path: str) -> str | None:
    """The same for an attribute that exists even if the device has no value for it."""
    try:
        return read_text(files, path)
    except FileUnreadable as error:
        if error.reason in _NO_VALUE:
            return None
        raise


def read_link(files: Files, path: str) -> str | None:
    """The target of a link; `None` if nothing exists at the path."""
    if not files.has(path):
        return None
    target = files.link(path)
    if target is None:
        raise _vanished(path)
    return target


def last_part(path: str) -> str:
    """The last name in a path.

    >>> last_part("../../../bus/pci/drivers/vfio-pci")
    'vfio-pci'
    """
    return path.rsplit("/", 1)[-1]


def read_number(files: Files, path: str, *, base: int = 10, minimum: int = 0) -> int | None:
    """The number in a file; `None` if the file does not exist."""
    text = read_whole(files, path)
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


def _vanished(path: str) -> MachineUnreadable:
    return MachineUnreadable(f"{path} vanished while the driver read it.")
