"""Provider trees for tests of the client, built in a line for each provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from roost.client.provider_tree import ProviderTree

DEFAULTS = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2_147_483_647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}

Fields = Mapping[str, Any]


def uuid_of(name: str) -> str:
    """The uuid that `put` gives to the provider with this name."""
    return str(uuid5(NAMESPACE_DNS, name))


def stored(inventories: Mapping[str, Fields]) -> dict[str, dict[str, Any]]:
    """Inventories with all fields, as the server shows them."""
    return {name: {**DEFAULTS, **fields} for name, fields in inventories.items()}


def put(
    tree: ProviderTree,
    name: str,
    below: str | None = None,
    *,
    inventories: Mapping[str, Fields] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
    generation: int | None = 1,
) -> ProviderTree:
    """Add a provider with a generation, as if the server had it."""
    if below is None:
        tree.new_root(name, uuid_of(name), generation)
    else:
        tree.new_child(name, below, uuid_of(name), generation)
    tree.update_inventory(name, stored(inventories or {}))
    tree.update_traits(name, traits)
    tree.update_aggregates(name, aggregates)
    return tree


def names(tree: ProviderTree) -> set[str]:
    """The names of all providers."""
    return {tree.data(uuid).name for uuid in tree.get_provider_uuids()}
