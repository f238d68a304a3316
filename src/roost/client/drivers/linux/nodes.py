"""The NUMA nodes of a machine with their CPUs, memory and huge pages."""

from __future__ import annotations

import re

from roost.client.drivers.linux.cpus import CPUS, read_cpu_list
from roost.client.drivers.linux.files import Files, required_number, unexpected
from roost.client.drivers.machine.values import HugepagePool, MachineUnreadable, NumaNode

_NODES = "/sys/devices/system/node"
_MEMINFO = "/proc/meminfo"
_MEMORY = re.compile(r".*MemTotal:\s*(\d+) kB")
_ADVICE = "Mount all of sysfs at /sys. If CPUs just came or went, the next report finds them."
_POOL = re.compile(r"hugepages-(\d+)kB")


def read_nodes(
    files: Files, online: frozenset[int], isolated: frozenset[int]
) -> tuple[NumaNode, ...]:
    """The nodes by their numbers; a kernel without NUMA has the one node 0."""
    names = files.names(_NODES, "node[0-9]*")
    numbers = sorted(int(name.removeprefix("node")) for name in names)
    _check_whole(files, frozenset(numbers), online)
    if len(numbers) > 1:
        return tuple(_read_node(files, number, online, isolated) for number in numbers)
    return (read_only_node(files, numbers[0] if numbers else 0, online, isolated),)


def _check_whole(files: Files, numbers: frozenset[int], online: frozenset[int]) -> None:
    """Refuse a list of nodes that lacks some: their CPUs would count as those of other nodes."""
    expected = read_cpu_list(files, f"{_NODES}/online") or frozenset()
    # With NUMA, the directory of each CPU has a link to its node.
    if not numbers and files.names(f"{CPUS}/cpu{min(online)}", "node[0-9]*"):
        raise MachineUnreadable(
            f"{_NODES} has no node, although the CPUs have; sysfs is not whole."
        )
    if missing := expected - numbers:
        raise MachineUnreadable(f"{_NODES} has no directory of node {min(missing)}. {_ADVICE}")
    lists = [read_cpu_list(files, f"{_NODES}/node{number}/cpulist") for number in numbers]
    known = frozenset[int]().union(*(cpus for cpus in lists if cpus is not None))
    if None not in lists and numbers and (homeless := online - known):
        raise MachineUnreadable(
            f"CPU {min(homeless)} is online, but in no node of {_NODES}. {_ADVICE}"
        )


def _read_node(
    files: Files, number: int, online: frozenset[int], isolated: frozenset[int]
) -> NumaNode:
    node = f"{_NODES}/node{number}"
    listed = read_cpu_list(files, f"{node}/cpulist")
    if listed is None:
        raise MachineUnreadable(f"{node}/cpulist is missing.")
    cpus = online & listed
    return NumaNode(
        number,
        cpus=cpus,
        isolated_cpus=cpus & isolated,
        memory_kib=_read_memory(files, f"{node}/meminfo", f"Node {number} MemTotal"),
        hugepages=_read_hugepages(files, f"{node}/hugepages"),
    )


def read_only_node(
    files: Files, number: int, online: frozenset[int], isolated: frozenset[int]
) -> NumaNode:
    """The only node of a machine, with all CPUs and all memory.

    Its memory comes from `/proc/meminfo`. A container often sees its own share there, and some
    kernels count the memory of a node in `/sys` only after its first use.
    """
    return NumaNode(
        number,
        cpus=online,
        isolated_cpus=online & isolated,
        memory_kib=_read_memory(files, _MEMINFO, "MemTotal"),
        hugepages=_read_hugepages(files, "/sys/kernel/mm/hugepages"),
    )


def _read_memory(files: Files, path: str, field: str) -> int:
    lines = files.lines(path, field)
    if not lines:
        raise MachineUnreadable(f"{path} does not exist, or has no line {field!r}.")
    match = _MEMORY.fullmatch(lines[0])
    if match is None:
        raise unexpected(path, f"a number of kB for {field!r}", lines[0])
    return int(match[1])


def _read_hugepages(files: Files, directory: str) -> tuple[HugepagePool, ...]:
    pools = []
    for name in files.names(directory, "hugepages-*kB"):
        if match := _POOL.fullmatch(name):
            pages = required_number(files, f"{directory}/{name}/nr_hugepages")
            pools.append(HugepagePool(int(match[1]), pages))
    return tuple(sorted(pools, key=lambda pool: pool.size_kib))
