"""Reading the XML of libvirt, with errors that name the missing part."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from roost.client.drivers.machine.values import MachineUnreadable

_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}


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
