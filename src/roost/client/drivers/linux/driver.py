"""The driver `linux`: this machine, or a captured one, as a tree of providers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from roost.client.drivers.driver import DeclaringDriver
from roost.client.drivers.linux.captures import open_files
from roost.client.drivers.linux.disks import read_disks
from roost.client.drivers.linux.files import Files, WithoutSysfs
from roost.client.drivers.linux.nodes import (
    CPUS,
    read_cpu,
    read_cpus_of_proc,
    read_isolated_cpus,
    read_nodes,
    read_online_cpus,
    read_only_node,
)
from roost.client.drivers.linux.pci import read_fpga_regions, read_pci_functions, read_tpms
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import (
    DeviceKind,
    Machine,
    MachineUnreadable,
    UnreadDevices,
)
from roost.model.trees.declaration import Declaration


@dataclass(kw_only=True)
class LinuxDriver(MachineOptions, DeclaringDriver):
    """Describes this machine as /sys and /proc show it, or a captured machine.

    Each report reads the whole machine, because devices and pages come and go.
    """

    root: Annotated[Path, "Directory with the machine's /proc and /sys, or a capture."] = Path("/")
    sysfs: Annotated[
        Literal["required", "absent"], "`absent` for a container that never has /sys."
    ] = "required"

    def declare(self, nodename: str) -> Declaration:
        """The machine in its present state."""
        files = open_files(str(self.root))
        machine = read_container(files) if self.sysfs == "absent" else read_machine(files)
        return declare_machine(machine, nodename, self)


def read_machine(files: Files) -> Machine:
    """The machine that these files describe.

    An unreadable CPU or memory is an error, because a host without them is of no use. An unreadable
    device is `unread`.
    """
    if not files.has(CPUS):
        raise MachineUnreadable(
            f"{CPUS} does not exist, so sysfs is not mounted: mount it at /sys, or let the "
            "container see the host's. A container that never has it needs the option sysfs=absent."
        )
    online = read_online_cpus(files)
    nodes = read_nodes(files, online, read_isolated_cpus(files))
    functions, unread = read_pci_functions(files, has_nodes=len(nodes) > 1)
    disks, has_all_disks = read_disks(files)
    regions, has_all_regions = read_fpga_regions(files)
    tpms, has_all_tpms = read_tpms(files)
    is_whole = {
        DeviceKind.DISK: has_all_disks,
        DeviceKind.FPGA: has_all_regions,
        DeviceKind.TPM: has_all_tpms,
    }
    return Machine(
        cpu=read_cpu(files, online),
        nodes=nodes,
        pci_functions=functions,
        disks=disks,
        fpga_regions=regions,
        tpms=tpms,
        unread=unread.with_kinds(kind for kind, whole in is_whole.items() if not whole),
    )


def read_container(files: Files) -> Machine:
    """The CPUs and memory that `/proc` describes, as one node; all devices are unread."""
    files = WithoutSysfs(files)
    online = read_cpus_of_proc(files)
    return Machine(
        cpu=read_cpu(files, online),
        nodes=(read_only_node(files, 0, online, frozenset()),),
        unread=UnreadDevices(kinds=frozenset(DeviceKind)),
    )
