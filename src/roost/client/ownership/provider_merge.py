"""The three-way merge of one provider. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from roost.client.declaration import DeclaredProvider, InventoryFields
from roost.client.ownership.record import OwnedProvider
from roost.client.provider_tree import ProviderData
from roost.model.inventory import DEFAULTS


@dataclass(frozen=True, slots=True)
class ProviderMerge:
    """What a provider shall have, and what its owner owns of it.

    The owner owns `pending` until the merge is written, and `settled` afterwards.
    """

    inventory: dict[str, dict[str, Any]]
    traits: Set[str]
    aggregates: Set[str]
    pending: OwnedProvider
    settled: OwnedProvider


def merge_provider(
    provider: ProviderData, declared: DeclaredProvider, owned: OwnedProvider
) -> ProviderMerge:
    """Merge a declaration of a provider into what the provider has."""
    inventory = _merged_inventory(provider, declared, owned)
    changed = {
        name
        for name in declared.inventories.keys() & provider.inventory.keys()
        if differs(provider.inventory[name], inventory[name])
    }
    # The declaration changes these inventories, so the owner owns them as if it had added them.
    unchanged = provider.inventory.keys() - changed
    inventories = _NameMerge(unchanged, set(declared.inventories), set(owned.inventories))
    traits = _NameMerge(provider.traits, declared.traits, owned.traits)
    aggregates = _NameMerge(provider.aggregates, declared.aggregates, owned.aggregates)

    created = owned.created or provider.generation is None
    return ProviderMerge(
        inventory,
        traits.result,
        aggregates.result,
        OwnedProvider(
            provider.name,
            created,
            {
                # An undeclared field stays owned until it has its default.
                name: frozenset(declared.inventories.get(name, ()))
                | owned.inventories.get(name, frozenset())
                for name in inventories.pending
            },
            frozenset(traits.pending),
            frozenset(aggregates.pending),
        ),
        OwnedProvider(
            provider.name,
            created,
            {name: frozenset(declared.inventories[name]) for name in inventories.settled},
            frozenset(traits.settled),
            frozenset(aggregates.settled),
        ),
    )


def undeclared_inventories(
    provider: ProviderData, declared: DeclaredProvider, owned: OwnedProvider, classes: Set[str]
) -> dict[str, InventoryFields]:
    """The present inventories of these classes that the owner owns and does not declare."""
    return {
        name: {key: provider.inventory[name][key] for key in keys & provider.inventory[name].keys()}
        for name, keys in sorted(owned.inventories.items())
        if name in provider.inventory.keys() & classes and name not in declared.inventories
    }


def differs(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an inventory has another value in one of the wanted fields."""
    return any(present.get(name) != value for name, value in wanted.items())


class _NameMerge:
    """The three-way merge of a set of names: `owned` is its base."""

    def __init__(self, present: Set[str], declared: Set[str], owned: Set[str]) -> None:
        self.result = (present - owned) | declared
        self.pending = (owned & (present | declared)) | (declared - present)
        self.settled = self.pending & declared


def _merged_inventory(
    provider: ProviderData, declared: DeclaredProvider, owned: OwnedProvider
) -> dict[str, dict[str, Any]]:
    foreign = provider.inventory.keys() - owned.inventories.keys()
    return {name: provider.inventory[name] for name in foreign} | {
        name: _merged_fields(
            provider.inventory.get(name, {}), fields, owned.inventories.get(name, frozenset())
        )
        for name, fields in declared.inventories.items()
    }


def _merged_fields(
    present: Mapping[str, Any], declared: Mapping[str, Any], owned: frozenset[str]
) -> dict[str, Any]:
    """An inventory with the declared fields; owned fields without declaration get their default."""
    undeclared = {name: DEFAULTS[name] for name in owned - declared.keys() if name in DEFAULTS}
    return {**present, **undeclared, **declared}
