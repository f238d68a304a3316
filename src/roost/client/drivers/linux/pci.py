"""The PCI functions of a machine with their virtual devices, and devices of other buses."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TypeVar

from roost.client.drivers.linux.files import (
    Files,
    last_part,
    read_link,
    read_number,
    read_text,
    required_number,
    unexpected,
)
from roost.client.drivers.machine.values import (
    DeviceKind,
    FpgaRegion,
    MachineUnreadable,
    MediatedType,
    PciFunction,
    Tpm,
    UnreadDevices,
)

_LOG = logging.getLogger(__name__)

_MOST = re.compile(r"\bmax_instance=(\d+)")

_GPUS = "/proc/driver/nvidia/gpus"
_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_MINOR = "Device Minor"

_DEVICES = "/sys/bus/pci/devices"
_EVERY_FUNCTION = UnreadDevices(kinds=frozenset({DeviceKind.PCI}))

_Device = TypeVar("_Device")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_mediated_types(files: Files, device: str) -> tuple[MediatedType, ...]:
    """The types that the function at `device` and its virtual functions have, by their ids.

    Newer NVIDIA GPUs have the types at their virtual functions, one device at each of them.
    """
    found = sorted(_types(files, device), key=lambda each: each.id)
    return tuple(_sum(list(same)) for _, same in groupby(found, key=lambda each: each.id))


def _types(files: Files, device: str) -> Iterator[MediatedType]:
    yield from _own_types(files, device)
    for virtual in files.names(device, "virtfn*"):
        target = read_link(files, f"{device}/{virtual}")
        if target is None:
            raise MachineUnreadable(f"{device}/{virtual} vanished while the driver read it.")
        yield from _own_types(files, f"{device.rpartition('/')[0]}/{last_part(target)}")


def _own_types(files: Files, device: str) -> Iterator[MediatedType]:
    types = f"{device}/mdev_supported_types"
    for type_id in files.names(types):
        description = read_text(files, f"{types}/{type_id}/description") or ""
        most = _MOST.search(description)
        yield MediatedType(
            type_id,
            name=read_text(files, f"{types}/{type_id}/name") or "",
            available=required_number(files, f"{types}/{type_id}/available_instances"),
            existing=len(files.names(f"{types}/{type_id}/devices")),
            most=None if most is None else int(most[1]),
        )


def _sum(same: list[MediatedType]) -> MediatedType:
    first = same[0]
    return MediatedType(
        first.id,
        first.name,
        available=sum(each.available for each in same),
        existing=sum(each.existing for each in same),
        most=first.most,
    )


def count_mig_instances(files: Files, address: str) -> int:
    """The number of compute instances of the GPU at a PCI address.

    The driver shows neither their profiles nor their sizes in files.
    """
    if not files.has(f"{_GPUS}/{address}"):
        return 0
    path = f"{_GPUS}/{address}/information"
    lines = files.lines(path, _MINOR)
    minor = lines[0].partition(":")[2].strip() if lines else ""
    if not minor.isdecimal():
        raise unexpected(path, f"a number for {_MINOR!r}", minor)
    instances = f"{_CAPABILITIES}/gpu{minor}/mig"
    return sum(
        len(files.names(f"{instances}/{instance}", "ci[0-9]*"))
        for instance in files.names(instances, "gi[0-9]*")
    )


def read_pci_functions(
    files: Files, *, has_nodes: bool
) -> tuple[tuple[PciFunction, ...], UnreadDevices]:
    """All physical functions, and the unreadable ones, each with a warning.

    `has_nodes` says that the machine has several NUMA nodes, and each function a file with its own.
    """
    if not files.has(_DEVICES):
        _LOG.info("%s does not exist; the providers of PCI functions stay as they are.", _DEVICES)
        return (), _EVERY_FUNCTION
    try:
        addresses = files.names(_DEVICES)
    except MachineUnreadable as error:
        _LOG.warning(
            "The driver cannot read PCI functions; their providers stay as they are: %s", error
        )
        return (), _EVERY_FUNCTION
    found = {address: _read_present(files, address, has_nodes) for address in addresses}
    return (
        tuple(function for function in found.values() if isinstance(function, PciFunction)),
        UnreadDevices(
            pci_addresses=frozenset(
                address for address, each in found.items() if isinstance(each, MachineUnreadable)
            )
        ),
    )


def _read_present(
    files: Files, address: str, has_nodes: bool
) -> PciFunction | MachineUnreadable | None:
    """The function, or why it is unreadable; `None` for a virtual one, and for one that is gone."""
    try:
        if read_link(files, f"{_DEVICES}/{address}/physfn") is not None:
            return None
        return _read_function(files, address, has_nodes)
    except MachineUnreadable as error:
        if not files.has(f"{_DEVICES}/{address}"):
            return None
        _LOG.warning(
            "The driver cannot read PCI function %s; its provider stays as it is: %s",
            address,
            error,
        )
        return error


def _read_function(files: Files, address: str, has_nodes: bool) -> PciFunction:
    device = f"{_DEVICES}/{address}"
    driver = read_link(files, f"{device}/driver")
    virtual_functions_possible, virtual_functions = _read_virtual_functions(files, device)
    return PciFunction(
        address,
        class_code=required_number(files, f"{device}/class", base=16),
        vendor=_read_id(files, f"{device}/vendor"),
        product=_read_id(files, f"{device}/device"),
        numa_node=_read_numa_node(files, f"{device}/numa_node", has_nodes),
        driver=None if driver is None else last_part(driver),
        has_iommu_group=read_link(files, f"{device}/iommu_group") is not None,
        is_console=read_number(files, f"{device}/boot_vga") == 1,
        virtual_functions_possible=virtual_functions_possible,
        virtual_functions=virtual_functions,
        virtual_product=_read_virtual_product(files, device) if virtual_functions else None,
        rdma_links=_read_rdma_links(files, f"{device}/infiniband"),
        has_fpga_region=bool(files.names(f"{device}/fpga_region")),
        has_tpm=bool(files.names(f"{device}/tpm")),
        mediated_types=read_mediated_types(files, device),
        mig_instances=count_mig_instances(files, address),
        compute_partition=read_text(files, f"{device}/current_compute_partition"),
    )


def _read_numa_node(files: Files, path: str, has_nodes: bool) -> int | None:
    number = read_number(files, path, minimum=-1)
    if number is None and has_nodes:
        raise MachineUnreadable(f"{path} is missing.")
    return None if number is None or number < 0 else number


def _read_id(files: Files, path: str) -> str:
    """A vendor or a product as four hexadecimal digits."""
    number = required_number(files, path, base=16)
    if number > 0xFFFF:
        raise unexpected(path, "an id of four hexadecimal digits", hex(number))
    return f"{number:04x}"


def _read_virtual_functions(files: Files, device: str) -> tuple[int, int]:
    """How many virtual functions the function could have, and how many it has."""
    paths = [f"{device}/{file}" for file in ("sriov_totalvfs", "sriov_numvfs")]
    if not any(files.has(path) for path in (*paths, f"{device}/virtfn0")):
        return 0, 0
    possible, present = (required_number(files, path) for path in paths)
    return possible, present


def _read_virtual_product(files: Files, device: str) -> str:
    """The product of the first virtual function, which is that of all virtual functions."""
    target = read_link(files, f"{device}/virtfn0")
    if target is None:
        raise MachineUnreadable(f"{device}/virtfn0 is missing.")
    return _read_id(files, f"{_DEVICES}/{last_part(target)}/device")


def _read_rdma_links(files: Files, directory: str) -> frozenset[str]:
    """The link layers of the ports of an RDMA device, such as `InfiniBand`."""
    return frozenset(
        layer
        for name in files.names(directory)
        for port in files.names(f"{directory}/{name}/ports")
        if (layer := read_text(files, f"{directory}/{name}/ports/{port}/link_layer"))
    )


def read_fpga_regions(files: Files) -> tuple[tuple[FpgaRegion, ...], bool]:
    """The regions, and whether these are all. Those of a PCI function belong to its provider."""

    def read(_: str, parents: list[str]) -> FpgaRegion | None:
        is_pci = any(_PCI.fullmatch(parent) for parent in parents)
        return None if is_pci else FpgaRegion(parents[-1])

    return _read_all(files, "/sys/class/fpga_region", read)


def read_tpms(files: Files) -> tuple[tuple[Tpm, ...], bool]:
    """The TPMs, and whether these are all."""

    def read(path: str, parents: list[str]) -> Tpm | None:
        if _PCI.fullmatch(parents[-1]):
            return None
        return Tpm(parents[-1], read_number(files, f"{path}/tpm_version_major"))

    return _read_all(files, "/sys/class/tpm", read)


def _read_all(
    files: Files, directory: str, read: Callable[[str, list[str]], _Device | None]
) -> tuple[tuple[_Device, ...], bool]:
    """What `read` makes of the path of each device of a class, and of the device's parents."""
    found = []
    is_whole = True
    try:
        for entry in files.names(directory):
            parents = _parents(files, f"{directory}/{entry}")
            device = read(f"{directory}/{entry}", parents) if parents else None
            if device is not None:
                found.append(device)
    except MachineUnreadable as error:
        is_whole = False
        _LOG.warning(
            "The driver cannot read all of %s; the providers stay as they are: %s", directory, error
        )
    return tuple(found), is_whole


def _parents(files: Files, path: str) -> list[str]:
    """The devices above an entry of a class, the nearest last; none if software makes the entry."""
    link = read_link(files, path)
    # The link ends in the name of the class and the entry.
    parts = [] if link is None else link.partition("devices/")[2].split("/")[:-2]
    return [] if "virtual" in parts else parts
