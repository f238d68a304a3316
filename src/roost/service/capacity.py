"""The one place that decides whether claims fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from roost.model.consumers import Claim
from roost.service.errors import Conflict
from roost.store import allocations
from roost.store.allocations import Held, Stock

_PREFIX = "Unable to allocate inventory: "

# (provider id, resource class id) -> amount
Amounts = Mapping[tuple[int, int], int]


def check_capacity(
    connection: Connection,
    claims: Sequence[Claim],
    class_ids: Mapping[str, int],
    provider_ids: Mapping[str, int],
    held: Sequence[Held],
) -> None:
    """Raise a conflict unless all claims fit together, in place of what is `held` now.

    The providers are locked, all classes exist.
    """
    claimed = sorted({provider_ids[uuid] for claim in claims for uuid in claim.allocations})
    if not claimed:
        return
    stock = allocations.stock(connection, claimed, class_ids)
    asked = _asked(claims, class_ids, provider_ids)
    before = _held(held)
    _check_inventories(claims, class_ids, provider_ids, stock)
    for claim in claims:
        for uuid, resources in claim.allocations.items():
            for name, amount in resources.items():
                key = provider_ids[uuid], class_ids[name]
                if key not in stock:
                    raise _without_inventory(name, uuid)
                _check_amount(stock[key], uuid, amount)
                _check_room(stock[key], uuid, asked[key], before.get(key, 0))


def _asked(
    claims: Sequence[Claim], class_ids: Mapping[str, int], provider_ids: Mapping[str, int]
) -> Amounts:
    asked: dict[tuple[int, int], int] = defaultdict(int)
    for claim in claims:
        for uuid, resources in claim.allocations.items():
            for name, amount in resources.items():
                asked[provider_ids[uuid], class_ids[name]] += amount
    return asked


def _held(held: Sequence[Held]) -> Amounts:
    amounts: dict[tuple[int, int], int] = defaultdict(int)
    for row in held:
        amounts[row.provider_id, row.class_id] += row.used
    return amounts


def _check_inventories(
    claims: Sequence[Claim],
    class_ids: Mapping[str, int],
    provider_ids: Mapping[str, int],
    stock: Mapping[tuple[int, int], Stock],
) -> None:
    """Every provider must have at least one of the classes of the whole request."""
    stocked = {provider_id for provider_id, _ in stock}
    for claim in claims:
        for uuid in claim.allocations:
            if provider_ids[uuid] not in stocked:
                names = sorted(class_ids, key=class_ids.__getitem__)
                raise _without_inventory(", ".join(names), uuid)


def _check_amount(stock: Stock, uuid: str, amount: int) -> None:
    if not stock.inventory.allows(amount):
        raise Conflict(
            f"{_PREFIX}Unable to create allocation for '{stock.inventory.resource_class}' on "
            f"resource provider '{uuid}'. The requested amount would violate inventory "
            f"constraints. (asked for {amount}; min_unit {stock.inventory.min_unit}, max_unit "
            f"{stock.inventory.max_unit}, step_size {stock.inventory.step_size})"
        )


def _check_room(stock: Stock, uuid: str, asked: int, held_before: int) -> None:
    used = stock.used - held_before + asked
    # An over-full provider may be relieved or rewritten as it is, but not filled further.
    if used > stock.inventory.capacity and used > stock.used:
        raise Conflict(
            f"{_PREFIX}Unable to create allocation for '{stock.inventory.resource_class}' on "
            f"resource provider '{uuid}'. The requested amount would exceed the capacity. "
            f"(asked for {asked}; {stock.used - held_before} of {stock.inventory.capacity:g} are "
            "in use by others)"
        )


def _without_inventory(names: str, uuid: str) -> Conflict:
    return Conflict(f"{_PREFIX}Inventory for '{names}' on resource provider '{uuid}' invalid.")
