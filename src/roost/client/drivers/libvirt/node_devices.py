"""The PCI functions and disks among the node devices that libvirt reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from xml.etree.ElementTree import Element

from roost.client.drivers.libvirt.xml import attribute_of, number, parse, text_of
from roost.client.drivers.machine.values import Disk, MachineUnreadable, PciFunction

_LOG = logging.getLogger(__name__)

_VGA = 0x0300
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class _FoundFunction:
    """A PCI function, and its relation to virtual functions."""

    function: PciFunction
    is_virtual: bool
    virtual_addresses: tuple[str, ...]


def read_pci_functions(devices: Sequence[str]) -> tuple[PciFunction, ...]:
    """All physical functions; a warning names each unreadable one, which is left out."""
    found = list(_read_all(devices, "pci", _read_function))
    products = {each.function.address: each.function.product for each in found}
    functions = (
        replace(each.function, virtual_product=products.get(each.virtual_addresses[0]))
        if each.virtual_addresses
        else each.function
        for each in found
        if not each.is_virtual
    )
    return tuple(sorted(functions, key=lambda function: function.address))


def read_disks(devices: Sequence[str]) -> tuple[Disk, ...]:
    """The disks that are fixed to the host. libvirt does not report whether they rotate."""
    disks = (disk for disk in _read_all(devices, "storage", _read_disk) if disk is not None)
    return tuple(sorted(disks, key=lambda disk: disk.name))


def _read_all(
    devices: Sequence[str], kind: str, read: Callable[[Element, Element], _Read]
) -> Iterator[_Read]:
    """The result of `read` for each device with the capability."""
    for text in devices:
        try:
            device = parse(text, "node device")
            capability = device.find(f"capability[@type='{kind}']")
            if capability is not None:
                yield read(device, capability)
        except MachineUnreadable as error:
            name = text.partition("<name>")[2].partition("</name>")[0]
            _LOG.warning("The driver leaves out device %s: %s", name, error)


def _read_function(device: Element, pci: Element) -> _FoundFunction:
    virtual = pci.find("capability[@type='virt_functions']")
    virtual_addresses = () if virtual is None else tuple(map(_address, virtual.findall("address")))
    possible = None if virtual is None else virtual.get("maxCount")
    numa = pci.find("numa")
    class_code = number(text_of(pci, "class"), "<class>")
    function = PciFunction(
        _own_address(pci),
        class_code=class_code,
        vendor=_id(pci, "vendor"),
        product=_id(pci, "product"),
        numa_node=None if numa is None else number(attribute_of(numa, "node"), "<numa>"),
        driver=device.findtext("driver/name"),
        has_iommu_group=pci.find("iommuGroup") is not None,
        # libvirt does not report which VGA controller shows the console, so each may.
        is_console=class_code >> 8 == _VGA,
        virtual_functions_possible=number(possible or str(len(virtual_addresses)), "maxCount"),
        virtual_functions=len(virtual_addresses),
    )
    is_virtual = pci.find("capability[@type='phys_function']") is not None
    return _FoundFunction(function, is_virtual, virtual_addresses)


def _own_address(pci: Element) -> str:
    return _formatted(*(text_of(pci, part) for part in ("domain", "bus", "slot", "function")))


def _address(element: Element) -> str:
    return _formatted(
        *(attribute_of(element, part) for part in ("domain", "bus", "slot", "function"))
    )


def _formatted(domain: str, bus: str, slot: str, function: str) -> str:
    return (
        f"{number(domain, 'a domain'):04x}:{number(bus, 'a bus'):02x}:"
        f"{number(slot, 'a slot'):02x}.{number(function, 'a function'):x}"
    )


def _id(pci: Element, name: str) -> str:
    element = pci.find(name)
    if element is None:
        raise MachineUnreadable(f"libvirt's <{pci.tag}> has no <{name}>.")
    return f"{number(attribute_of(element, 'id'), f'<{name}>'):04x}"


def _read_disk(_: Element, storage: Element) -> Disk | None:
    is_removable = storage.find("capability[@type='removable']") is not None
    if is_removable or storage.findtext("drive_type") != "disk":
        return None
    name = text_of(storage, "block").rsplit("/", 1)[-1]
    return Disk(name, size_bytes=number(text_of(storage, "size"), "<size>"))
