"""Captured machines, and drawings of the trees that a driver declares for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from roost.client.declaration import Declaration, InventoryFields
from roost.client.drivers.linux.captures import Capture, parse_capture

CAPTURES = Path(__file__).parents[2] / "client" / "captures"


def captured(name: str) -> Capture:
    """One of the machines in `tests/client/captures`."""
    return parse_capture((CAPTURES / f"{name}.txt").read_text(), origin=name)


def unpack(capture: Capture, root: Path) -> None:
    """Write the files of a capture below a directory; the driver takes it as `root`.

    Unreadable files become empty, because root can read all files.
    """
    for name, entry in sorted(capture.entries.items()):
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "->":
            path.symlink_to(entry.text)
            if any(Capture.is_below(name, other) for other in capture.entries):
                path.resolve().mkdir(parents=True, exist_ok=True)
        elif entry.kind == "/":
            path.mkdir(exist_ok=True)
        else:
            path.write_text(entry.text + "\n" if entry.kind == "=" else "")


def drawing(declaration: Declaration) -> str:
    """A line for each provider, below its parent: name, inventories, then a colon and traits."""
    return "".join(f"{line}\n" for line in _lines(declaration, None, ""))


def _lines(declaration: Declaration, parent: str | None, indent: str) -> Iterator[str]:
    for provider in declaration.providers:
        if provider.parent != parent:
            continue
        inventories = ", ".join(
            f"{resource_class} {_inventory(fields)}"
            for resource_class, fields in provider.inventories.items()
        )
        traits = " ".join(sorted(provider.traits))
        yield f"{indent}{provider.name}  {inventories}".rstrip()
        yield from wrap(traits, 100, initial_indent=f"{indent}: ", subsequent_indent=f"{indent}: ")
        yield from _lines(declaration, provider.name, f"{indent}    ")


def _inventory(fields: InventoryFields) -> str:
    reserved = f" reserved {fields['reserved']}" if fields["reserved"] else ""
    given = fields.get("allocation_ratio", 1)
    ratio = f" ratio {given}" if given != 1 else ""
    return f"{fields['total']}{reserved}{ratio}"
