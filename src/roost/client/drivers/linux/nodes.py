"""The NUMA nodes of a machine with their CPUs, memory and huge pages."""

from __future__ import annotations

import re

from roost.client.drivers.linux.files import Files, read_whole, required_number, unexpected
from roost.client.drivers.machine.values import Cpu, HugepagePool, MachineUnreadable, NumaNode

CPUINFO = "/proc/cpuinfo"
CPUS = "/sys/devices/system/cpu"
_CPUS_MAX = 1 << 16

# A guest can use these features only if KVM has switched them on.
_KVM_SWITCHES = {
    "sev": "/sys/module/kvm_amd/parameters/sev",
    "sev_es": "/sys/module/kvm_amd/parameters/sev_es",
    "sev_snp": "/sys/module/kvm_amd/parameters/sev_snp",
    "tdx": "/sys/module/kvm_intel/parameters/tdx",
}

_NODES = "/sys/devices/system/node"
_MEMINFO = "/proc/meminfo"
_MEMORY = re.compile(r".*MemTotal:\s*(\d+) kB")
_ADVICE = "Mount all of sysfs at /sys. If CPUs just came or went, the next report finds them."
_POOL = re.compile(r"hugepages-(\d+)kB")


def parse_cpu_list(text: str, path: str) -> frozenset[int]:
    """The CPUs in a list of the kernel, which comes from the file at `path`.

    >>> sorted(parse_cpu_list("0-2,8", "/sys/devices/system/cpu/online"))
    [0, 1, 2, 8]
    """
    cpus: set[int] = set()
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            begin, end = int(first), int(last or first)
            if not 0 <= begin <= end < _CPUS_MAX:
                raise ValueError
            cpus.update(range(begin, end + 1))
    except ValueError:
        raise unexpected(path, "a list of CPUs like 0-3,8", text) from None
    return frozenset(cpus)


def read_cpu_list(files: Files, path: str) -> frozenset[int] | None:
    """The CPUs in a list file; `None` if the file does not exist."""
    text = read_whole(files, path)
    return None if text is None else parse_cpu_list(text, path)


def read_online_cpus(files: Files) -> frozenset[int]:
    """The logical CPUs that are online."""
    path = f"{CPUS}/online"
    cpus = read_cpu_list(files, path)
    if not cpus:
        raise MachineUnreadable(f"{path} does not exist, or lists no CPU; sysfs must be whole.")
    return cpus


def read_cpus_of_proc(files: Files) -> frozenset[int]:
    """The logical CPUs in `/proc/cpuinfo`, for containers without sysfs."""
    cpus = parse_cpu_list(",".join(_values(files, "processor")), CPUINFO)
    if not cpus:
        raise MachineUnreadable(f"{CPUINFO} does not exist, or lists no CPU; mount procfs.")
    return cpus


def read_isolated_cpus(files: Files) -> frozenset[int]:
    """The CPUs that the kernel keeps free for pinned workloads (`isolcpus=`)."""
    return read_cpu_list(files, f"{CPUS}/isolated") or frozenset()


def read_cpu(files: Files, online: frozenset[int]) -> Cpu:
    """The properties that all online CPUs share."""
    flags = _common_flags(files)
    switched_on = {flag for flag, path in _KVM_SWITCHES.items() if files.text(path) in ("Y", "1")}
    return Cpu(
        architecture=files.text("/proc/sys/kernel/arch") or _guess_architecture(flags),
        vendor=next(iter(_values(files, "vendor_id")), ""),
        flags=(flags - _KVM_SWITCHES.keys()) | switched_on,
        hyperthreading=any(_has_sibling(files, cpu) for cpu in sorted(online)),
    )


def _has_sibling(files: Files, cpu: int) -> bool:
    path = f"{CPUS}/cpu{cpu}/topology/thread_siblings_list"
    return len(read_cpu_list(files, path) or ()) > 1


def _common_flags(files: Files) -> frozenset[str]:
    """The flags of all cores. A workload may run on any core, and cores may differ."""
    flags = [frozenset(value.split()) for value in _values(files, "flags", "Features")]
    return frozenset.intersection(*flags) if flags else frozenset()


def _values(files: Files, *fields: str) -> list[str]:
    lines = files.lines(CPUINFO, *fields)
    return [line.partition(":")[2].strip() for line in lines]


def _guess_architecture(flags: frozenset[str]) -> str:
    """The architecture under kernels before 6.1, which have no file for it."""
    if "asimd" in flags:
        return "aarch64"
    if "fpu" in flags:
        return "x86_64" if "lm" in flags else "i686"
    return ""


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
