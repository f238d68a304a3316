"""The CPUs and NUMA nodes in the capabilities that libvirt reports."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from roost.client.drivers.libvirt.node_devices import attribute_of, kibibytes, number, parse
from roost.client.drivers.machine.values import Cpu, HugepagePool, MachineUnreadable, NumaNode

_VENDORS = {"Intel": "GenuineIntel", "AMD": "AuthenticAMD"}

# Features with another name in Linux. Linux also writes _ for a hyphen and for a full stop.
_LINUX_NAMES = {
    "amd_stibp": "stibp",
    "avx512bitalg": "avx512_bitalg",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "pclmuldq": "pclmulqdq",
    "spec_ctrl": "ibrs",
}

_MB_INDEX, _CPUS_INDEX = 1, 2  # in the answer of virNodeGetInfo


def read_cpu(capabilities: str, expanded: str | None) -> Cpu:
    """The properties that all CPUs share; `expanded` is the XML of the CPU with all features."""
    host = _host(capabilities)
    cpu = _cpu(host)
    features = {feature.get("name", "") for feature in cpu.findall("feature")}
    if expanded is not None:
        every = parse(expanded, "CPU").findall("feature")
        features |= {feature.get("name", "") for feature in every}
    siblings = [cpu.get("siblings", "") for cpu in host.iterfind("topology/cells/cell/cpus/cpu")]
    vendor = (cpu.findtext("vendor") or "").strip()
    return Cpu(
        architecture=(cpu.findtext("arch") or "").strip(),
        vendor=_VENDORS.get(vendor, vendor),
        flags=frozenset(_linux_name(feature) for feature in features),
        hyperthreading=any(not cpus.isdigit() for cpus in siblings if cpus),
    )


def whole_cpu(capabilities: str) -> str:
    """The CPU of the host as an XML document."""
    return ElementTree.tostring(_cpu(_host(capabilities)), encoding="unicode")


def read_nodes(capabilities: str, info: Sequence[object]) -> tuple[NumaNode, ...]:
    """The nodes by their numbers.

    If libvirt reports no node, the host is one node with the CPUs and memory in `info`, which is
    the answer of virNodeGetInfo.
    """
    cells = _host(capabilities).findall("topology/cells/cell")
    if cells:
        nodes = (_read_cell(cell) for cell in cells)
        return tuple(sorted(nodes, key=lambda node: node.number))
    cpus = number(str(info[_CPUS_INDEX]), "the number of CPUs")
    memory_mb = number(str(info[_MB_INDEX]), "the memory")
    return (NumaNode(0, cpus=frozenset(range(cpus)), memory_kib=memory_mb * 1024),)


def _linux_name(feature: str) -> str:
    name = feature.replace("-", "_").replace(".", "_")
    return _LINUX_NAMES.get(name, name)


def _host(capabilities: str) -> Element:
    host = parse(capabilities, "capabilities").find("host")
    if host is None:
        raise MachineUnreadable("libvirt's capabilities have no <host>.")
    return host


def _cpu(host: Element) -> Element:
    cpu = host.find("cpu")
    if cpu is None:
        raise MachineUnreadable("libvirt's capabilities have no <cpu> of the host.")
    return cpu


def _read_cell(cell: Element) -> NumaNode:
    memory = cell.find("memory")
    return NumaNode(
        number(attribute_of(cell, "id"), "a cell's id"),
        cpus=frozenset(
            number(attribute_of(cpu, "id"), "a CPU's id") for cpu in cell.iterfind("cpus/cpu")
        ),
        memory_kib=0 if memory is None else kibibytes(memory),
        hugepages=_read_hugepages(cell),
    )


def _read_hugepages(cell: Element) -> tuple[HugepagePool, ...]:
    """All pools but that of the smallest pages, which is ordinary memory."""
    pools = [
        HugepagePool(
            number(attribute_of(pages, "size"), "the size of pages"),
            number(pages.text or "", "a number of pages"),
        )
        for pages in cell.findall("pages")
    ]
    return tuple(sorted(pools, key=lambda pool: pool.size_kib)[1:])
