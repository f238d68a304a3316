"""Checks of single providers: amounts and units of their inventories. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from roost.cli.doctor.diagnosis import Diagnosis, Grade, ProviderName
from roost.client.gathering import GatheredProvider
from roost.model.inventory import Inventory
from roost.model.text import plain_number, whole_number


class _Correction(NamedTuple):
    """The right value of a field, and what the wrong one means."""

    check: str
    field: str
    value: float
    consequence: str


def inventory_findings(provider: GatheredProvider) -> Iterator[Diagnosis]:
    """What is wrong with the inventories of a provider."""
    subject = ProviderName(provider.uuid, provider.name)
    for name in sorted(provider.inventories):
        inventory, used = provider.inventory(name), provider.used.get(name, 0)
        yield from _units(subject, inventory)
        if inventory.allocation_ratio <= 0:
            yield _wrong_field(
                subject,
                inventory,
                _Correction("no-ratio", "allocation_ratio", 1.0, "so it offers nothing"),
            )
        elif inventory.reserved > inventory.total:
            total = inventory.total
            consequence = f"and its total is {total}"
            yield _wrong_field(
                subject,
                inventory,
                _Correction("reserved-above-total", "reserved", total, consequence),
            )
        elif used > inventory.capacity:
            yield _over_capacity(subject, inventory, used)
    for name in sorted(provider.used.keys() - provider.inventories.keys()):
        amount = provider.used[name]
        yield Diagnosis(
            Grade.FAULT,
            "allocation-without-inventory",
            f"{subject.name}: consumers hold {amount} {name}, and it has no inventory of {name}.",
            f"roost provider set {subject.argument} --inventory {name}={amount}",
            subject,
        )


def _over_capacity(subject: ProviderName, inventory: Inventory, used: int) -> Diagnosis:
    """More is held than the capacity: less reserved may be enough, or consumers have to move."""
    name = inventory.resource_class
    most_reserved = inventory.total - math.ceil(used / inventory.allocation_ratio)
    if 0 <= most_reserved < inventory.reserved:
        command = (
            f"roost provider set {subject.argument} --inventory {name}:reserved={most_reserved}"
        )
    else:
        command = f"roost consumer list --provider {subject.argument}"
    return Diagnosis(
        Grade.FAULT,
        "over-capacity",
        f"{subject.name}: consumers hold {used} {name}, and its capacity is "
        f"{whole_number(inventory.capacity)}.",
        command,
        subject,
    )


def _wrong_field(subject: ProviderName, inventory: Inventory, correction: _Correction) -> Diagnosis:
    name, field = inventory.resource_class, correction.field
    assignment = f"{name}:{field}={plain_number(correction.value)}"
    return Diagnosis(
        Grade.FAULT,
        correction.check,
        f"{subject.name}: {field} of {name} is {plain_number(getattr(inventory, field))}, "
        f"{correction.consequence}.",
        f"roost provider set {subject.argument} --inventory {assignment}",
        subject,
    )


def _units(subject: ProviderName, inventory: Inventory) -> Iterator[Diagnosis]:
    """Units that leave no amount that a consumer may hold."""
    name = inventory.resource_class
    smallest = _smallest_amount(inventory)
    if smallest is None or smallest > inventory.max_unit:
        assignments = (("min_unit", 1), ("max_unit", max(1, inventory.total)), ("step_size", 1))
        options = " ".join(f"--inventory {name}:{field}={value}" for field, value in assignments)
        yield Diagnosis(
            Grade.FAULT,
            "no-amount-allowed",
            f"{subject.name}: no amount of {name} is allowed, with min_unit {inventory.min_unit}, "
            f"max_unit {inventory.max_unit} and step_size {inventory.step_size}.",
            f"roost provider set {subject.argument} {options}",
            subject,
        )
    elif 0 < inventory.capacity < smallest:
        yield Diagnosis(
            Grade.WARNING,
            "smallest-amount-above-capacity",
            f"{subject.name}: the smallest amount of {name} is {smallest}, and its capacity is "
            f"{whole_number(inventory.capacity)}.",
            f"roost provider set {subject.argument} {_room_for_one(inventory)}",
            subject,
        )


def _room_for_one(inventory: Inventory) -> str:
    """The options that make a capacity hold the smallest amount.

    Smaller units are enough for a capacity of one or more; below that, the ratio is too small.

    >>> _room_for_one(Inventory("VCPU", 4, reserved=3, allocation_ratio=0.5))
    '--inventory VCPU:allocation_ratio=1'
    """
    assignments = {}
    if inventory.capacity < 1:
        # A capacity above zero has a total above what is reserved, so this ratio leaves one.
        assignments["allocation_ratio"] = 1
    if _smallest_amount(inventory) != 1:
        assignments |= {"min_unit": 1, "step_size": 1}
    name = inventory.resource_class
    return " ".join(f"--inventory {name}:{field}={value}" for field, value in assignments.items())


def _smallest_amount(inventory: Inventory) -> int | None:
    """The smallest amount that the units allow; `None` if a step of zero allows none.

    >>> _smallest_amount(Inventory("DISK_GB", 100, min_unit=15, step_size=10))
    20
    """
    if inventory.step_size < 1:
        return None
    steps = math.ceil(max(1, inventory.min_unit) / inventory.step_size)
    return steps * inventory.step_size
