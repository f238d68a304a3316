"""The decision whether claims fit into the inventories of their providers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from roost.model.consumers import Claim
from roost.model.inventory import Inventory
from roost.model.text import whole_number
from roost.service.errors import Conflict, ConflictCause
from roost.store.rows.claims import AllocationRow, InventoryUsage, InventoryUsages

_PREFIX = "Unable to allocate inventory: "

# (provider id, resource class id) -> amount
Amounts = Mapping[tuple[int, int], int]


def check_capacity(
    claims: Sequence[Claim],
    class_ids: Mapping[str, int],
    provider_ids: Mapping[str, int],
    held: Amounts,
    found: InventoryUsages,
) -> Amounts:
    """Raise a conflict unless all claims fit together; return the amounts that they ask for.

    The claims replace the allocations in `held`. The caller has read the inventories in `found`
    under the locks of all providers, and all classes exist.
    """
    asked = _asked(claims, class_ids, provider_ids)
    if asked:
        _check_inventories(claims, class_ids, provider_ids, found)
    for claim in claims:
        for uuid, resources in claim.allocations.items():
            for name, amount in resources.items():
                key = provider_ids[uuid], class_ids[name]
                if key not in found:
                    raise _without_inventory(name, uuid)
                _check_amount(found[key].inventory, uuid, amount)
                _check_remaining(found[key], uuid, asked[key], held.get(key, 0))
    return asked


def usages_after(asked: Amounts, held: Amounts, found: InventoryUsages) -> Amounts:
    """Returns the new usage of each inventory in `found` that the claims change.

    `asked` has the amounts of the claims, which replace the allocations in `held`.
    """
    return {
        key: found[key].used - held.get(key, 0) + asked.get(key, 0)
        for key in {**held, **asked}
        if key in found
    }


def _asked(
    claims: Sequence[Claim], class_ids: Mapping[str, int], provider_ids: Mapping[str, int]
) -> Amounts:
    asked: dict[tuple[int, int], int] = defaultdict(int)
    for claim in claims:
        for uuid, resources in claim.allocations.items():
            for name, amount in resources.items():
                asked[provider_ids[uuid], class_ids[name]] += amount
    return asked


def amounts_of(held: Sequence[AllocationRow]) -> Amounts:
    """What these allocations hold of each inventory."""
    amounts: dict[tuple[int, int], int] = defaultdict(int)
    for row in held:
        amounts[row.provider_id, row.class_id] += row.used
    return amounts


def _check_inventories(
    claims: Sequence[Claim],
    class_ids: Mapping[str, int],
    provider_ids: Mapping[str, int],
    found: InventoryUsages,
) -> None:
    """Refuse a provider that has inventory of no class of the whole request."""
    # `found` may have further classes: those that the claims give up.
    asked_ids = set(class_ids.values())
    with_inventory = {provider_id for provider_id, class_id in found if class_id in asked_ids}
    for claim in claims:
        for uuid in claim.allocations:
            if provider_ids[uuid] not in with_inventory:
                names = sorted(class_ids, key=class_ids.__getitem__)
                raise _without_inventory(", ".join(names), uuid)


def _check_amount(inventory: Inventory, uuid: str, amount: int) -> None:
    if not inventory.allows(amount):
        raise Conflict(
            f"{_PREFIX}Unable to create allocation for '{inventory.resource_class}' on "
            f"resource provider '{uuid}'. The requested amount would violate inventory "
            f"constraints. (asked for {amount}; min_unit {inventory.min_unit}, max_unit "
            f"{inventory.max_unit}, step_size {inventory.step_size})",
            cause=ConflictCause.AMOUNT,
        )


def _check_remaining(found: InventoryUsage, uuid: str, asked: int, held_before: int) -> None:
    inventory = found.inventory
    used_by_others = found.used - held_before
    # Consumers may hold more than the capacity after an inventory became smaller. Then a claim
    # may lower the usage or keep it, but not raise it.
    raises_usage = asked > held_before
    if raises_usage and not inventory.fits(asked, used_by_others):
        raise Conflict(
            f"{_PREFIX}Unable to create allocation for '{inventory.resource_class}' on "
            f"resource provider '{uuid}'. The requested amount would exceed the capacity. "
            f"(asked for {asked}; {used_by_others} of {whole_number(inventory.capacity)} are in "
            "use by other consumers)",
            cause=ConflictCause.CAPACITY,
        )


def _without_inventory(names: str, uuid: str) -> Conflict:
    return Conflict(
        f"{_PREFIX}Inventory for '{names}' on resource provider '{uuid}' invalid.",
        cause=ConflictCause.NO_INVENTORY,
    )
