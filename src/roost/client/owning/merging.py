"""Making a declaration true in a tree that others write to as well. Pure.

What the writer owns and no longer declares is removed; what it never put there is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.errors import DeclarationRefused
from roost.client.owning.ownership import Owned, OwnedProvider, is_owner_trait
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
    return _Merge(tree, owned, mark, held).run(declaration)


class _Merge:
    """One run of `merge`."""

    def __init__(self, tree: ProviderTree, owned: Owned, mark: str, held: Held) -> None:
        self._tree = tree
        self._owned = owned
        self._mark = mark
        self._held = held
        self._kept: list[str] = []
        self._before: dict[str, OwnedProvider] = {}
        self._after: dict[str, OwnedProvider] = {}
        # The uuids with which providers were to be created: that may still be on its way.
        self._meant = {
            mine.name: uuid
            for uuid, mine in owned.providers.items()
            if mine.created and not tree.exists(uuid)
        }

    def run(self, declaration: Declaration) -> Merged:
        declared = {self._place(provider): provider for provider in declaration.providers}
        uuids = self._tree.get_provider_uuids()
        self._children = Counter(self._tree.data(uuid).parent_uuid for uuid in uuids)
        for uuid in reversed(uuids):
            provider = self._tree.data(uuid)
            if uuid in declared:
                self._update(provider, declared[uuid])
            elif provider.generation is None:
                # The beginning of a tree in which nothing is declared.
                self._tree.remove(uuid)
            elif self._owned.of(uuid, provider.name):
                self._withdraw(provider)
        return Merged(_some(self._before), _some(self._after), tuple(self._kept))

    def _place(self, provider: DeclaredProvider) -> str:
        """The uuid of a declared provider, which is added to the tree if it is not in it."""
        for trait in provider.traits:
            if is_owner_trait(trait) and trait != self._mark:
                raise DeclarationRefused(
                    f"Provider {provider.name} is declared with {trait}, the mark of another "
                    "owner: leave it out, or write as that owner"
                )
        address = provider.uuid or provider.name
        if self._tree.exists(address):
            return self._check(provider, self._tree.data(address))
        if self._tree.exists(provider.name):
            found = self._tree.data(provider.name).uuid
            raise DeclarationRefused(
                f"Provider {provider.name} is declared with uuid {provider.uuid}, but has {found}: "
                "declare that, or none"
            )
        uuid = provider.uuid or self._meant.get(provider.name) or new_uuid()
        if provider.parent is None:
            return self._tree.new_root(provider.name, uuid)
        return self._tree.new_child(provider.name, provider.parent, uuid)

    def _check(self, provider: DeclaredProvider, found: ProviderData) -> str:
        if found.name != provider.name:
            raise DeclarationRefused(
                f"Provider {found.uuid} is declared as {provider.name}, but is named {found.name}; "
                "providers are not renamed: declare the name that it has"
            )
        parent = self._tree.data(found.parent_uuid).name if found.parent_uuid else None
        if provider.parent is not None and parent != provider.parent:
            self._kept.append(
                f"{found.name}: stays below {parent or 'nothing'}, though declared below "
                f"{provider.parent}; delete it to have it created there"
            )
        return found.uuid

    def _withdraw(self, provider: ProviderData) -> None:
        """Remove what is ours of a provider that is not declared, or all of it."""
        mine = self._owned.of(provider.uuid, provider.name)
        obstacle = self._obstacle(provider, mine)
        if mine.created and not obstacle:
            self._before[provider.uuid] = mine
            self._children[provider.parent_uuid] -= 1
            self._tree.remove(provider.uuid)
            return
        if mine.created:
            self._kept.append(f"{provider.name}: not deleted, {obstacle}")
        self._update(provider, DeclaredProvider(provider.name))

    def _obstacle(self, provider: ProviderData, mine: OwnedProvider) -> str:
        """Why a provider must not be deleted: others have something below it or on it."""
        obstacles = []
        if provider.uuid in self._held:
            obstacles.append("it is in use")
        if foreign := sorted(provider.inventory.keys() - mine.inventories.keys()):
            obstacles.append(f"others have inventory on it ({', '.join(foreign)})")
        if self._children[provider.uuid]:
            obstacles.append("there are providers below it")
        return " and ".join(obstacles)

    def _update(self, provider: ProviderData, wanted: DeclaredProvider) -> None:
        """Make one provider what is wanted of it."""
        mine = self._owned.of(provider.uuid, provider.name)
        if mine.created or provider.generation is None:
            wanted = replace(wanted, traits=wanted.traits | {self._mark})
        if provider.uuid in self._held:
            in_use = _undeclared(provider, wanted, mine, self._held[provider.uuid])
            wanted = replace(wanted, inventories={**in_use, **wanted.inventories})
            self._kept += [
                f"{provider.name}: inventory {name} not removed, in use" for name in in_use
            ]
        before, after = _update(self._tree, provider, wanted, mine)
        self._before[provider.uuid], self._after[provider.uuid] = before, after


def _some(providers: Mapping[str, OwnedProvider]) -> Owned:
    return Owned({uuid: provider for uuid, provider in providers.items() if provider})


def may_lose(owned: Owned, declaration: Declaration) -> bool:
    """Whether inventory that is owned is no longer declared."""
    declared = {provider.name: provider.inventories for provider in declaration.providers}
    return any(
        mine.inventories.keys() - declared.get(mine.name, {}).keys()
        for mine in owned.providers.values()
    )


def written_part(
    merged: Merged, before: Owned, wanted: ProviderTree, written: ProviderTree
) -> Owned:
    """What is owned after a flush that ended half way: what was, and what it has written."""
    owned = {}
    for uuid, mine in merged.owned.providers.items():
        if not written.exists(uuid):
            continue
        was, there = before.of(uuid, mine.name), written.data(uuid)
        aim = wanted.data(uuid).inventory if wanted.exists(uuid) else {}
        arrived = {
            name
            for name in there.inventory.keys() & aim.keys()
            if not _differs(there.inventory[name], aim[name])
        }
        owned[uuid] = OwnedProvider(
            mine.name,
            mine.created,
            {
                name: fields
                for name, fields in mine.inventories.items()
                if name in was.inventories or name in arrived
            },
            mine.traits & (was.traits | there.traits),
            mine.aggregates & (was.aggregates | there.aggregates),
        )
    return _some(owned)


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
