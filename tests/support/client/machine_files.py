"""The files of a captured machine in a directory, in which files vanish, break and come back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from roost.client.drivers.linux.captures import Capture, CapturedPath
from support.client.random_choices import Choices

DEVICES = ("/sys/bus/pci/devices/", "/sys/block/")
"""The folders of devices. A device has a folder of its own in one of them."""


class MachineFiles:
    """A machine whose files a test disturbs. `root` is the option of the linux driver."""

    def __init__(self, capture: Capture, root: Path) -> None:
        self.root = root
        self._entries = {path: entry for path, entry in capture.entries.items() if path != "/"}
        self._away: Path = root / "away"
        self.restore()

    def restore(self) -> None:
        """Make all files as they were captured."""
        for name in ("sys", "proc", "away"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for path, entry in self._entries.items():
            self._write(path, entry)

    # -- faults

    def break_file(self, path: str) -> None:
        """Make reading a file an error, whoever reads it: a directory takes its place."""
        self._remove(path)
        self._at(path).mkdir(parents=True, exist_ok=True)

    def hide_file(self, path: str) -> None:
        """Remove a file; the directory of its device stays."""
        self._remove(path)

    def garble(self, path: str) -> None:
        """Replace the text of a file by text that means nothing."""
        self._remove(path)
        self._at(path).write_text("???\n")

    def unmount(self, path: str) -> None:
        """Remove all below a directory such as `/sys`."""
        shutil.rmtree(self._at(path), ignore_errors=True)
        self._at(path).mkdir(parents=True, exist_ok=True)

    def disturb(self, choices: Choices) -> str:
        """Make one random fault; returns its description."""
        faults: list[tuple[Callable[[str], None], list[str]]] = [
            (self.break_file, self.device_files()),
            (self.hide_file, self.device_files()),
            (self.garble, self.device_files(kind="=")),
            (self.break_file, list(self._entries)),
            (self.unmount, ["/sys", "/sys/bus", "/sys/block", "/sys/bus/pci/devices"]),
        ]
        fault, paths = choices.one(faults)
        path = choices.one(sorted(paths))
        fault(path)
        return f"{fault.__name__} {path}"

    # -- devices

    def device_files(self, kind: str | None = None) -> list[str]:
        """The paths of the files of all devices, or of those of one kind of entry."""
        return [
            path
            for path, entry in self._entries.items()
            if path.startswith(DEVICES) and (kind is None or entry.kind == kind)
        ]

    # -- inside

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _remove(self, path: str) -> None:
        found = self._at(path)
        if found.is_symlink() or found.is_file():
            found.unlink()
        elif found.is_dir():
            shutil.rmtree(found)

    def _write(self, path: str, entry: CapturedPath) -> None:
        place = self._at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "=":
            place.write_text(f"{entry.text}\n")
        elif entry.kind == "->":
            place.symlink_to(entry.text)
        else:
            # An entry of a directory, or a file that could not be read.
            place.mkdir(exist_ok=True)
