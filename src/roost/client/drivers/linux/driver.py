"""The driver `linux`: this machine, or a captured one, as a tree of providers."""

from __future__ import annotations

from typing import ClassVar

from roost.client.declaration import Declaration
from roost.client.drivers.driver import DeclaringDriver
from roost.client.drivers.linux.captures import open_files
from roost.client.drivers.linux.cpus import read_cpu, read_isolated_cpus, read_online_cpus
from roost.client.drivers.linux.disks import read_disks
from roost.client.drivers.linux.files import Files
from roost.client.drivers.linux.nodes import read_nodes
from roost.client.drivers.linux.pci import read_pci_functions
from roost.client.drivers.machine.options import MACHINE_OPTION_HELP, read_options
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import Machine


class LinuxDriver(DeclaringDriver):
    """Describes the machine below `root`, which is a directory or a capture.

    Each call of `declare` reads the whole machine, because devices and pages come and go. The
    remaining options are those of `MachineOptions`; each may be text.
    """

    option_help: ClassVar = {
        "root": "Directory or capture that has the machine's /proc and /sys (/).",
        **MACHINE_OPTION_HELP,
    }

    def __init__(self, **options: object) -> None:
        self._options = read_options("linux", options, own=("root",))
        self._root = str(options.get("root", "/"))

    def declare(self, nodename: str) -> Declaration:
        """The machine in its present state."""
        machine = read_machine(open_files(self._root))
        return declare_machine(machine, nodename, self._options)


def read_machine(files: Files) -> Machine:
    """The machine that these files describe.

    An unreadable CPU or memory is an error, because a host without them is of no use. The readers
    of disks and PCI functions leave out an unreadable device.
    """
    online = read_online_cpus(files)
    return Machine(
        cpu=read_cpu(files, online),
        nodes=read_nodes(files, online, read_isolated_cpus(files)),
        pci_functions=read_pci_functions(files),
        disks=read_disks(files),
    )
