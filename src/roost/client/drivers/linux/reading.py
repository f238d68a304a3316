"""Reading a machine: everything that the kernel tells about it in files."""

from __future__ import annotations

from roost.client.drivers.linux.cpus import read_cpu, read_isolated_cpus, read_online_cpus
from roost.client.drivers.linux.disks import read_disks
from roost.client.drivers.linux.files import Files
from roost.client.drivers.linux.nodes import read_nodes
from roost.client.drivers.linux.pci import read_pci_functions
from roost.client.drivers.machine.values import Machine


def read_machine(files: Files) -> Machine:
    """The machine that these files are of.

    Without CPUs or memory there is no machine to describe, so what is odd there is an error; an
    odd disk or PCI function is left out.
    """
    online = read_online_cpus(files)
    return Machine(
        cpu=read_cpu(files, online),
        nodes=read_nodes(files, online, read_isolated_cpus(files)),
        pci_functions=read_pci_functions(files),
        disks=read_disks(files),
    )
