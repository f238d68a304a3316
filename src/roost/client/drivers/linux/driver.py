"""The driver `linux`: this machine, or one that was captured, as a tree of providers."""

from __future__ import annotations

from roost.client.declaration import Declaration
from roost.client.drivers.driver import DeclaringDriver
from roost.client.drivers.linux.captures import open_files
from roost.client.drivers.linux.reading import read_machine
from roost.client.drivers.machine.options import read_options
from roost.client.drivers.machine.tree import declare_machine


class LinuxDriver(DeclaringDriver):
    """Describes the machine below `root`, which is a directory or a capture.

    Everything is read anew each time, so that devices and pages may come and go. The other
    options are those of `MachineOptions`; all may be given as text.
    """

    def __init__(self, **options: object) -> None:
        self._options = read_options("linux", options, own=("root",))
        self._root = str(options.get("root", "/"))

    def declare(self, nodename: str) -> Declaration:
        """The machine as it is now."""
        machine = read_machine(open_files(self._root))
        return declare_machine(machine, nodename, self._options)
