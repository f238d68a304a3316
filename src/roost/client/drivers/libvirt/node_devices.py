"""The XML of libvirt, and the PCI functions and disks among the node devices in it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from roost.client.drivers.machine.device_names import disk_path, readable_id
from roost.client.drivers.machine.values import (
    DeviceKind,
    Disk,
    MachineUnreadable,
    PciFunction,
    UnreadDevices,
)

_LOG = logging.getLogger(__name__)

_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}

_VGA = 0x0300
_Read = TypeVar("_Read")

_NAME = re.compile(r"<name>(.*?)</name>")
_PCI_NAME = re.compile(r"pci_([0-9a-f]{4,})_([0-9a-f]{2})_([0-9a-f]{2})_([0-7])")
# Links of udev to a disk, which the linux driver names in the same way.
_BY_ID = re.compile(r"/dev/disk/by-id/(wwn-0x[0-9a-f]+|nvme-(?:eui|uuid|nvme)\..+)")
_BY_PATH = re.compile(r"/dev/disk/by-path/(.+)")
_NAMESPACE = re.compile(r"nvme\d+n(\d+)")


def parse(text: str, what: str) -> Element:
    """The root of a document; errors call the document `what`."""
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise MachineUnreadable(f"libvirt's {what} is not XML: {error}.") from error


def text_of(element: Element, path: str) -> str:
    """The text of the element at a path below this one."""
    found = element.findtext(path)
    if found is None:
        raise MachineUnreadable(f"libvirt's <{element.tag}> has no <{path}>.")
    return found.strip()


def attribute_of(element: Element, name: str) -> str:
    """An attribute of an element."""
    found = element.get(name)
    if found is None:
        raise MachineUnreadable(f"libvirt's <{element.tag}> has no attribute {name!r}.")
    return found


def number(text: str, what: str) -> int:
    """A number, decimal or hexadecimal with 0x; errors call it `what`."""
    try:
        return int(text, 0)
    except ValueError:
        raise MachineUnreadable(
            f"libvirt reports {text[:60]!r} for {what}, not a number."
        ) from None


def kibibytes(element: Element) -> int:
    """An amount in KiB, which is also its unit if the element names none."""
    unit = element.get("unit", "KiB")
    if unit not in _KIB:
        raise MachineUnreadable(f"libvirt's <{element.tag}> is in {unit!r}, an unknown unit.")
    return int(number(element.text or "", f"<{element.tag}>") * _KIB[unit])


@dataclass(frozen=True, slots=True)
class _FoundFunction:
    """A PCI function, and its relation to virtual functions."""

    function: PciFunction
    is_virtual: bool
    virtual_addresses: tuple[str, ...]


def read_pci_functions(
    devices: Sequence[str],
) -> tuple[tuple[PciFunction, ...], UnreadDevices]:
    """All physical functions, and the unreadable ones, each with a warning."""
    found, unreadable = _read_all(devices, "pci", _read_function)
    products = {each.function.address: each.function.product for each in found}
    functions = []
    unknown = set()
    for each in found:
        virtual_product = products.get(next(iter(each.virtual_addresses), ""))
        if each.virtual_addresses and virtual_product is None:
            unknown.add(each.function.address)
        elif not each.is_virtual:
            functions.append(replace(each.function, virtual_product=virtual_product))
    addresses = {name: _address_of(name) for name in unreadable}
    unread = UnreadDevices(
        kinds=frozenset({DeviceKind.PCI}) if None in addresses.values() else frozenset(),
        pci_addresses=frozenset(each for each in addresses.values() if each) | unknown,
    )
    return tuple(sorted(functions, key=lambda function: function.address)), unread


def read_disks(devices: Sequence[str]) -> tuple[tuple[Disk, ...], bool]:
    """The disks that are fixed to the host, and whether these are all.

    libvirt reports neither whether they rotate nor whether the host uses them, so `in_use` of each
    is `None`.
    """
    found, unreadable = _read_all(devices, "storage", _read_disk)
    disks = (disk for disk in found if disk is not None)
    return tuple(sorted(disks, key=lambda disk: disk.name)), not unreadable


def _read_all(
    devices: Sequence[str], kind: str, read: Callable[[Element, Element], _Read]
) -> tuple[list[_Read], list[str]]:
    """The result of `read` for each device with the capability; the names of unreadable devices."""
    found = []
    unreadable = []
    for text in devices:
        try:
            device = parse(text, "node device")
            capability = device.find(f"capability[@type='{kind}']")
            if capability is not None:
                found.append(read(device, capability))
        except MachineUnreadable as error:
            match = _NAME.search(text)
            name = match[1] if match else ""
            if _may_be(kind, name):
                unreadable.append(name)
                _LOG.warning(
                    "The driver cannot read device %s; its provider stays as it is: %s", name, error
                )
    return found, unreadable


def _may_be(kind: str, name: str) -> bool:
    """Whether the device of this name may have the capability."""
    return name.startswith("pci_") is (kind == "pci") if name else True


def _address_of(name: str) -> str | None:
    """The PCI address in the name of a device."""
    match = _PCI_NAME.fullmatch(name)
    return None if match is None else "{}:{}:{}.{}".format(*match.groups())


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


def _read_disk(device: Element, storage: Element) -> Disk | None:
    is_removable = storage.find("capability[@type='removable']") is not None
    if is_removable or storage.findtext("drive_type") != "disk":
        return None
    name = text_of(storage, "block").rsplit("/", 1)[-1]
    links = sorted(link.text or "" for link in device.findall("devnode[@type='link']"))
    by_id = next((match[1] for link in links if (match := _BY_ID.fullmatch(link))), None)
    return Disk(
        name,
        size_bytes=number(text_of(storage, "size"), "<size>"),
        world_wide_id=None if by_id is None else readable_id(by_id),
        serial=(storage.findtext("serial") or "").strip() or None,
        path=_read_path(device, name, links),
    )


def _read_path(device: Element, name: str, links: list[str]) -> str | None:
    by_path = next((match[1] for link in links if (match := _BY_PATH.fullmatch(link))), None)
    if by_path is not None:
        return by_path
    namespace = _NAMESPACE.fullmatch(name)
    directory = device.findtext("path") or ""
    return disk_path(directory, namespace=int(namespace[1]) if namespace else None)
