"""Making a declaration true in a tree that others write to as well. Pure.

What the writer owns and no longer declares is removed; what it never put there is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.errors import DeclarationRefused
from roost.client.owning.ownership import Owned, OwnedProvider
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.identifiers import new_uuid
from roost.model.inventory import DEFAULTS

Held = Mapping[str, frozenset[str]]
"""Providers, and resource classes on them, that are in use."""

NOTHING_HELD: Held = {}


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge.

    `owned` is to be remembered before anything is written: it has what will be put there as well
    as what will be removed. `settled` is to be remembered once all is written.
    """

    owned: Owned
    settled: Owned
    kept: tuple[str, ...] = ()
    """What should be deleted and cannot be, in words."""

    @property
    def losing(self) -> Held:
        """The providers that are to lose inventory, all of it or some, and which."""
        lost = {
            uuid: mine.inventories.keys() - self.settled.of(uuid, mine.name).inventories.keys()
            for uuid, mine in self.owned.providers.items()
        }
        return {uuid: frozenset(classes) for uuid, classes in lost.items() if classes}


def merge(
    tree: ProviderTree,
    declaration: Declaration,
    owned: Owned,
    mark: str,
    held: Held = NOTHING_HELD,
) -> Merged:
    """Edit the tree so that it has what is declared, and no longer what is owned but undeclared.

    Providers that are created here get the trait `mark`. What is in `held` is not removed, since it
    is in use: neither these providers, nor inventory of these classes on them.
    """
    declared = {_place(tree, provider, owned): provider for provider in declaration.providers}
    before: dict[str, OwnedProvider] = {}
    after: dict[str, OwnedProvider] = {}
    kept: list[str] = []
    for uuid in reversed(tree.get_provider_uuids()):
        provider = tree.data(uuid)
        mine = owned.of(uuid, provider.name)
        if uuid not in declared and provider.generation is None:
            # The beginning of a tree in which nothing is declared.
            tree.remove(uuid)
            continue
        if uuid not in declared and not mine:
            continue
        if uuid not in declared and mine.created:
            obstacle = _obstacle(tree, provider, mine, held)
            if not obstacle:
                before[uuid] = mine
                tree.remove(uuid)
                continue
            kept.append(f"{provider.name}: not deleted, {obstacle}")
        wanted = declared.get(uuid, DeclaredProvider(provider.name))
        if mine.created or provider.generation is None:
            wanted = replace(wanted, traits=wanted.traits | {mark})
        if uuid in held:
            in_use = _undeclared(provider, wanted, mine, held[uuid])
            wanted = replace(wanted, inventories={**in_use, **wanted.inventories})
            kept += [f"{provider.name}: inventory {name} not removed, in use" for name in in_use]
        before[uuid], after[uuid] = _update(tree, provider, wanted, mine)
    return Merged(_owned(before), _owned(after), tuple(kept))


def _owned(providers: Mapping[str, OwnedProvider]) -> Owned:
    return Owned({uuid: provider for uuid, provider in providers.items() if provider})


def _place(tree: ProviderTree, provider: DeclaredProvider, owned: Owned) -> str:
    """The uuid of a declared provider, which is added to the tree if it is not in it."""
    address = provider.uuid or provider.name
    if tree.exists(address):
        return _checked(tree, provider, tree.data(address))
    if tree.exists(provider.name):
        found = tree.data(provider.name).uuid
        raise DeclarationRefused(
            f"Provider {provider.name} is declared with uuid {provider.uuid}, but has {found}"
        )
    uuid = provider.uuid or _meant(provider.name, tree, owned) or new_uuid()
    if provider.parent is None:
        return tree.new_root(provider.name, uuid)
    return tree.new_child(provider.name, provider.parent, uuid)


def _meant(name: str, tree: ProviderTree, owned: Owned) -> str | None:
    """The uuid that a provider was to be created with, if its creation may still be on its way."""
    for uuid, mine in owned.providers.items():
        if mine.created and mine.name == name and not tree.exists(uuid):
            return uuid
    return None


def _checked(tree: ProviderTree, provider: DeclaredProvider, found: ProviderData) -> str:
    if found.name != provider.name:
        raise DeclarationRefused(
            f"Provider {found.uuid} is declared as {provider.name}, but is named {found.name}; "
            "providers are not renamed: declare the name that it has"
        )
    parent = tree.data(found.parent_uuid).name if found.parent_uuid else None
    if provider.parent is not None and parent != provider.parent:
        raise DeclarationRefused(
            f"Provider {found.name} is declared below {provider.parent}, but is below {parent}; "
            "providers are not moved: declare it where it is, or delete it first"
        )
    return found.uuid


def _obstacle(tree: ProviderTree, provider: ProviderData, mine: OwnedProvider, held: Held) -> str:
    """Why a provider must not be deleted: others have something below it or on it."""
    obstacles = []
    if provider.uuid in held:
        obstacles.append("it is in use")
    if foreign := sorted(provider.inventory.keys() - mine.inventories.keys()):
        obstacles.append(f"others have inventory on it ({', '.join(foreign)})")
    if len(tree.get_provider_uuids(provider.uuid)) > 1:
        obstacles.append("there are providers below it")
    return " and ".join(obstacles)


def _undeclared(
    provider: ProviderData, wanted: DeclaredProvider, mine: OwnedProvider, classes: Set[str]
) -> dict[str, InventoryFields]:
    """The inventories of these classes that are ours, there and undeclared, as they are."""
    return {
        name: {key: provider.inventory[name][key] for key in keys & provider.inventory[name].keys()}
        for name, keys in sorted(mine.inventories.items())
        if name in provider.inventory.keys() & classes and name not in wanted.inventories
    }


def _update(
    tree: ProviderTree, provider: ProviderData, wanted: DeclaredProvider, mine: OwnedProvider
) -> tuple[OwnedProvider, OwnedProvider]:
    """Edit one provider; what is owned of it until this is written, and then."""
    inventory = _inventory(provider, wanted, mine)
    different = {
        name
        for name in wanted.inventories.keys() & provider.inventory.keys()
        if _differs(provider.inventory[name], inventory[name])
    }
    # What is there but not like this is put there by the declaration as much as what is not.
    same = provider.inventory.keys() - different
    inventories = _Names(same, set(wanted.inventories), set(mine.inventories))
    traits = _Names(provider.traits, wanted.traits, mine.traits)
    aggregates = _Names(provider.aggregates, wanted.aggregates, mine.aggregates)
    tree.update_inventory(provider.uuid, inventory)
    tree.update_traits(provider.uuid, traits.result)
    tree.update_aggregates(provider.uuid, aggregates.result)

    created = mine.created or provider.generation is None
    return (
        OwnedProvider(
            provider.name,
            created,
            {
                # Until it has its default, a field that is no longer declared remains ours.
                name: frozenset(wanted.inventories.get(name, ()))
                | mine.inventories.get(name, frozenset())
                for name in inventories.owned
            },
            frozenset(traits.owned),
            frozenset(aggregates.owned),
        ),
        OwnedProvider(
            provider.name,
            created,
            {name: frozenset(wanted.inventories[name]) for name in inventories.settled},
            frozenset(traits.settled),
            frozenset(aggregates.settled),
        ),
    )


class _Names:
    """Which names there will be, and which of them are ours: until they are written, and then."""

    def __init__(self, present: Set[str], declared: Set[str], mine: Set[str]) -> None:
        self.result = (present - mine) | declared
        self.owned = (mine & (present | declared)) | (declared - present)
        self.settled = self.owned & declared


def _inventory(
    provider: ProviderData, wanted: DeclaredProvider, mine: OwnedProvider
) -> dict[str, dict[str, Any]]:
    foreign = provider.inventory.keys() - mine.inventories.keys()
    return {name: provider.inventory[name] for name in foreign} | {
        name: _overlaid(
            provider.inventory.get(name, {}), fields, mine.inventories.get(name, frozenset())
        )
        for name, fields in wanted.inventories.items()
    }


def _overlaid(
    present: Mapping[str, Any], declared: Mapping[str, Any], mine: frozenset[str]
) -> dict[str, Any]:
    """An inventory with the declared fields; those that are no longer declared at their default."""
    undeclared = {name: DEFAULTS[name] for name in mine - declared.keys() if name in DEFAULTS}
    return {**present, **undeclared, **declared}


def _differs(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return any(present.get(name) != value for name, value in wanted.items())
