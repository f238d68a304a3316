"""The types of mediated devices (mdev) of a PCI function, for instance of virtual GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from roost.client.drivers.linux.files import (
    Files,
    last_part,
    read_link,
    read_text,
    required_number,
)
from roost.client.drivers.machine.values import MachineUnreadable, MediatedType

_MOST = re.compile(r"\bmax_instance=(\d+)")


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
