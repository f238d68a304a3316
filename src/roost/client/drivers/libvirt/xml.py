"""Reading XML that libvirt wrote: what should be there, or an error that says what is not."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from roost.client.drivers.machine.errors import MachineUnreadable

_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}


def parse(text: str, what: str) -> Element:
    """The document, of which an error says what it is."""
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise MachineUnreadable(f"libvirt's {what} is no XML: {error}.") from error


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
    """A number as libvirt writes them, decimal or with 0x before it."""
    try:
        return int(text, 0)
    except ValueError:
        raise MachineUnreadable(f"libvirt says {text[:60]!r} for {what}, not a number.") from None


def kibibytes(element: Element) -> int:
    """An amount with its unit, which is KiB if none is said."""
    unit = element.get("unit", "KiB")
    if unit not in _KIB:
        raise MachineUnreadable(f"libvirt's <{element.tag}> is in {unit!r}, an unknown unit.")
    return int(number(element.text or "", f"<{element.tag}>") * _KIB[unit])
