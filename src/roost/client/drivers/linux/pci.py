"""The PCI functions of a machine, with what the kernel's classes of devices say about them."""

from __future__ import annotations

import logging

from roost.client.drivers.linux.files import (
    Files,
    last_part,
    read_link,
    read_number,
    read_text,
    required_number,
    unexpected,
)
from roost.client.drivers.linux.mediated import read_mediated_types
from roost.client.drivers.linux.mig import count_mig_instances
from roost.client.drivers.machine.values import (
    DeviceKind,
    MachineUnreadable,
    PciFunction,
    UnreadDevices,
)

_LOG = logging.getLogger(__name__)

_DEVICES = "/sys/bus/pci/devices"
_EVERY_FUNCTION = UnreadDevices(kinds=frozenset({DeviceKind.PCI}))


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
