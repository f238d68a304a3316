"""The files of a captured machine in a directory, in which files vanish, break and come back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from roost.client.drivers.linux.captures import Capture
from support.client.captured_machines import unpack
from support.client.random_choices import Choices

DEVICES = ("/sys/bus/pci/devices/", "/sys/block/")
"""The folders of devices. A device has a folder of its own in one of them."""

IDENTITIES = ("/wwid", "/serial", "/eui", "/nguid", "/uuid")
"""The ends of files that tell a disk from others. A disk with another identity is another disk."""


class MachineFiles:
    """A machine whose files a test disturbs. `root` is the option of the linux driver."""

    def __init__(self, capture: Capture, root: Path) -> None:
        self.root = root
        self._capture = capture
        # The files and links, without those that are the directories of devices.
        self._paths = [
            path
            for path, entry in capture.entries.items()
            if entry.kind in ("=", "->")
            and not any(capture.is_below(path, each) for each in capture.entries)
        ]
        self.restore()

    def restore(self) -> None:
        """Make all files as they were captured."""
        shutil.rmtree(self.root, ignore_errors=True)
        unpack(self._capture, self.root)

    # -- faults

    def break_file(self, path: str) -> None:
        """Make reading a file an error, also for root: a directory takes its place."""
        self._remove(path)
        self._at(path).mkdir(parents=True, exist_ok=True)

    def hide_file(self, path: str) -> None:
        """Remove a file; the directory of its device stays."""
        self._remove(path)

    def garble(self, path: str) -> None:
        """Replace the text of a file by text that means nothing."""
        self._remove(path)
        if self._at(path).parent.is_dir():
            self._at(path).write_text("???\n")

    def unmount(self, path: str) -> None:
        """Remove all below a directory such as `/sys`."""
        shutil.rmtree(self._at(path), ignore_errors=True)
        self._at(path).mkdir(parents=True, exist_ok=True)

    def disturb(self, choices: Choices) -> str:
        """Make one random fault; returns its description."""
        faults: list[tuple[Callable[[str], None], list[str]]] = [
            (self.break_file, self._texts(DEVICES)),
            (self.hide_file, [path for path in self._paths if _is_attribute(path)]),
            (self.garble, [path for path in self._texts(DEVICES) if _is_attribute(path)]),
            (self.break_file, self._texts("/")),
            (self.unmount, ["/sys", "/sys/bus", "/sys/block", "/sys/bus/pci/devices"]),
        ]
        fault, paths = choices.one(faults)
        path = choices.one(sorted(paths))
        fault(path)
        return f"{fault.__name__} {path}"

    # -- inside

    def _texts(self, below: str | tuple[str, ...]) -> list[str]:
        """The files that are no links. A link that cannot be read needs a broken disk."""
        return [
            path
            for path in self._paths
            if path.startswith(below) and self._capture.entries[path].kind == "="
        ]

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _remove(self, path: str) -> None:
        found = self._at(path)
        if found.is_symlink() or found.is_file():
            found.unlink()
        elif found.is_dir():
            shutil.rmtree(found)


def _is_attribute(path: str) -> bool:
    """Whether a file belongs to a device, and says nothing about its identity."""
    return path.startswith(DEVICES) and not path.endswith(IDENTITIES)
