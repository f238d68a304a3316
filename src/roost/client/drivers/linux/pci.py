"""The PCI functions of a machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from roost.client.drivers.linux.files import Files, read_number, required_number, unexpected
from roost.client.drivers.machine.values import MachineUnreadable, PciFunction

_LOG = logging.getLogger(__name__)

_DEVICES = "/sys/bus/pci/devices"


def read_pci_functions(files: Files) -> tuple[PciFunction, ...]:
    """All physical functions; a warning names each unreadable one, which is left out."""
    return tuple(_functions(files))


def _functions(files: Files) -> Iterator[PciFunction]:
    for address in files.names(_DEVICES):
        try:
            if files.link(f"{_DEVICES}/{address}/physfn") is None:
                yield _read_function(files, address)
        except MachineUnreadable as error:
            _LOG.warning("The driver leaves out PCI function %s: %s", address, error)


def _read_function(files: Files, address: str) -> PciFunction:
    device = f"{_DEVICES}/{address}"
    numa_node = read_number(files, f"{device}/numa_node", minimum=-1)
    driver = files.link(f"{device}/driver")
    virtual_functions = read_number(files, f"{device}/sriov_numvfs") or 0
    return PciFunction(
        address,
        class_code=required_number(files, f"{device}/class", base=16),
        vendor=_read_id(files, f"{device}/vendor"),
        product=_read_id(files, f"{device}/device"),
        numa_node=None if numa_node is None or numa_node < 0 else numa_node,
        driver=None if driver is None else driver.rsplit("/", 1)[-1],
        has_iommu_group=files.link(f"{device}/iommu_group") is not None,
        is_console=read_number(files, f"{device}/boot_vga") == 1,
        virtual_functions_possible=read_number(files, f"{device}/sriov_totalvfs") or 0,
        virtual_functions=virtual_functions,
        virtual_product=_read_virtual_product(files, device) if virtual_functions else None,
    )


def _read_id(files: Files, path: str) -> str:
    """A vendor or a product as four hexadecimal digits."""
    number = required_number(files, path, base=16)
    if number > 0xFFFF:
        raise unexpected(path, "an id of four hexadecimal digits", hex(number))
    return f"{number:04x}"


def _read_virtual_product(files: Files, device: str) -> str | None:
    """The product of the first virtual function, which is that of all virtual functions."""
    target = files.link(f"{device}/virtfn0")
    if target is None:
        return None
    address = target.rsplit("/", 1)[-1]
    return _read_id(files, f"{_DEVICES}/{address}/device")
