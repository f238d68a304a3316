"""The three-way merge of a declaration into a tree that other writers edit as well. Pure.

The base is the ownership record; the two sides are the declaration and the tree. The merge removes
what the owner owns and no longer declares. The merge leaves alone what the owner never put there.

A device may be away for a moment: a card is reset, or a driver of the kernel is loaded anew. So the
owner keeps a missing provider for some reports and some minutes. If a driver suddenly misses most
of its providers, the machine is probably not readable. Then nothing is reported.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from roost.client.errors import DeclarationRefused, SuddenLoss
from roost.client.ownership.record import Absence, OwnedProvider, OwnershipRecord
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.identifiers import new_uuid
from roost.model.inventory import DEFAULTS
from roost.model.text import plain_number
from roost.model.trees.declaration import (
    Declaration,
    DeclaredProvider,
    InventoryFields,
    UnreadProviders,
)
from roost.model.trees.owner_names import child_uuid, is_owner_trait

MISSING_REPORTS = 3
MISSING_SECONDS = 300.0
_NAMES_SHOWN = 3

InventoriesInUse = Mapping[str, frozenset[str]]
"""Provider uuid -> resource classes of which there are allocations."""


@dataclass(frozen=True, slots=True)
class WithdrawalPolicy:
    """Withdraws a provider that is missing in so many reports, and for so many seconds.

    `now` is the time of the report, in seconds since the epoch.
    """

    now: float
    reports: int = MISSING_REPORTS
    seconds: float = MISSING_SECONDS

    def absence_of(self, missing: OwnedProvider) -> Absence:
        """The absence of a provider that this report misses."""
        # One long gap between two reports must not be enough.
        longest_gap = self.seconds / max(1, self.reports - 1)
        return Absence.counted(missing.absence, self.now, longest_gap)

    def is_due(self, absence: Absence) -> bool:
        """Whether the provider has been missing for long enough."""
        return absence.reports >= self.reports and absence.seconds >= self.seconds

    def describe(self) -> str:
        """What happens to a missing provider that is not due yet, in words.

        The text is the same in each report, so that the agent prints it once.
        """
        return (
            "stays for now, the driver does not find it; it is withdrawn after "
            f"{self.reports} reports and {plain_number(self.seconds / 60)} minutes"
        )


def refuse_sudden_loss(
    recorded: Mapping[str, OwnedProvider], missing: Collection[OwnedProvider]
) -> None:
    """Raise `SuddenLoss` if most of the recorded providers that the driver found are missing."""
    before = [owned for owned in recorded.values() if owned.absence is None]
    lost = sorted(owned.name for owned in missing if owned.absence is None)
    found = len(before) - len(lost)
    if found * 2 >= len(before):
        return
    shown = ", ".join(lost[:_NAMES_SHOWN]) + (", ..." if len(lost) > _NAMES_SHOWN else "")
    raise SuddenLoss(
        f"The driver finds {found} of the {len(before)} providers that it found before; missing "
        f"are {shown}. Nothing is reported. Is /sys mounted, and the driver allowed to read it? "
        "If the devices are really gone, report once with --accept-loss"
    )


def found_providers(
    tree: ProviderTree, declaration: Declaration, record: OwnershipRecord, owner_trait: str
) -> Mapping[str, str]:
    """The uuids of the declared providers that the tree has, by declared name.

    A provider that an operator has renamed is one of them. The tree stays as it is.
    """
    shape = TreeShape(copy.deepcopy(tree), record, owner_trait, lambda: False)
    uuids = {provider.name: shape.find_or_add(provider) for provider in declaration.providers}
    return {name: uuid for name, uuid in uuids.items() if tree.exists(uuid)}


class TreeShape:
    """Brings declared providers into a tree, parents before their children.

    `kept` gets a line for each provider that cannot have its declared name or parent.
    """

    def __init__(
        self,
        tree: ProviderTree,
        record: OwnershipRecord,
        owner_trait: str,
        may_move: Callable[[], bool],
    ) -> None:
        self._tree = tree
        self._record = record
        self._owner_trait = owner_trait
        self._may_move = may_move
        self.kept: list[str] = []
        # The uuid of each declared provider, and of the declared root above it, by its name.
        self._uuids: dict[str, str] = {}
        self._root_uuids: dict[str, str] = {}
        # An earlier request to create these providers may still be on its way to the server.
        self._uuids_on_the_way = {
            owned.name: uuid
            for uuid, owned in record.providers.items()
            if owned.created and not tree.exists(uuid)
        }

    def find_or_add(self, provider: DeclaredProvider) -> str:
        """The uuid of a declared provider, which is added to the tree if it is missing."""
        self._check_traits(provider)
        found = self._find(provider)
        uuid = self._add(provider) if found is None else self._placed(provider, found)
        self._uuids[provider.name] = uuid
        self._root_uuids[provider.name] = self._root_uuids.get(provider.parent or "", uuid)
        return uuid

    def _find(self, provider: DeclaredProvider) -> ProviderData | None:
        """The declared provider in the tree; `None` if the tree does not have it."""
        address = provider.uuid or provider.name
        if self._tree.exists(address):
            found = self._tree.data(address)
            if found.name == provider.name:
                return found
            raise DeclarationRefused(
                f"Provider {found.uuid} is declared as {provider.name}, but is named {found.name}; "
                "providers are not renamed: declare the name that it has"
            )
        if self._tree.exists(provider.name):
            named = self._tree.data(provider.name).uuid
            raise DeclarationRefused(
                f"Provider {provider.name} is declared with uuid {provider.uuid}, but has {named}: "
                "declare that uuid, or none"
            )
        return self._renamed(provider)

    def _renamed(self, provider: DeclaredProvider) -> ProviderData | None:
        """The provider that the owner created under the declared name, and that has another now."""
        uuid = self._new_uuid(provider)
        if not self._tree.exists(uuid):
            return None
        found = self._tree.data(uuid)
        self.kept.append(f"{found.name}: keeps this name, though declared as {provider.name}")
        return found

    def _new_uuid(self, provider: DeclaredProvider) -> str:
        """The uuid that a declared provider gets if it is created."""
        known = provider.uuid or self._uuids_on_the_way.get(provider.name)
        if known is not None:
            return known
        if provider.parent is None:
            return new_uuid()
        return child_uuid(self._root_uuids[provider.parent], self._owner_trait, provider.name)

    def _add(self, provider: DeclaredProvider) -> str:
        uuid = self._new_uuid(provider)
        if provider.parent is None:
            return self._tree.new_root(provider.name, uuid)
        return self._tree.new_child(provider.name, self._uuids[provider.parent], uuid)

    def _check_traits(self, provider: DeclaredProvider) -> None:
        for trait in provider.traits:
            if is_owner_trait(trait) and trait != self._owner_trait:
                raise DeclarationRefused(
                    f"Provider {provider.name} is declared with {trait}, the trait of another "
                    "owner: leave the trait out, or write as that owner"
                )

    def _placed(self, provider: DeclaredProvider, found: ProviderData) -> str:
        """The uuid of a found provider, which is moved below its declared parent if need be."""
        if provider.parent is None or self._uuids[provider.parent] == found.parent_uuid:
            return found.uuid
        obstacle = self._obstacle_to_move(found, self._uuids[provider.parent])
        if not obstacle:
            self._tree.move(found.uuid, self._uuids[provider.parent])
            return found.uuid
        place = (
            f"below {self._tree.data(found.parent_uuid).name}" if found.parent_uuid else "a root"
        )
        self.kept.append(
            f"{found.name}: stays {place}, though declared below {provider.parent}; {obstacle}"
        )
        return found.uuid

    def _obstacle_to_move(self, found: ProviderData, parent_uuid: str) -> str:
        """Why a provider must not be moved; empty if it may be."""
        if found.parent_uuid is None:
            return "roots are not moved"
        if not self._record.provider(found.uuid, found.name).created:
            return "another writer created it"
        if not self._may_move():
            return "the server is older than 1.37 and moves no providers"
        if parent_uuid in self._tree.get_provider_uuids(found.uuid):
            return "that provider is below it"
        return ""


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


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What the owner owns of the tree once it is merged.

    `pending` has what the owner is about to add and what it is about to remove: it is stored
    before the first write. `settled` is stored after the last write.
    """

    pending: OwnershipRecord
    settled: OwnershipRecord
    kept: tuple[str, ...] = ()
    """A line for each thing that is undeclared and cannot be removed."""

    @property
    def removed_inventories(self) -> InventoriesInUse:
        """The inventories that the merge removes, with those of deleted providers."""
        removed = {
            uuid: owned.inventories.keys() - self.settled.provider(uuid, "").inventories.keys()
            for uuid, owned in self.pending.providers.items()
        }
        return {uuid: frozenset(classes) for uuid, classes in removed.items() if classes}


def may_remove_inventory(record: OwnershipRecord, declaration: Declaration) -> bool:
    """Whether the owner owns an inventory that it no longer declares."""
    declared = {provider.name: provider.inventories for provider in declaration.providers}
    return any(
        owned.inventories.keys() - declared.get(owned.name, {}).keys()
        for owned in record.providers.values()
    )


def written_record(
    merged: MergeResult, before: OwnershipRecord, wanted: ProviderTree, written: ProviderTree
) -> OwnershipRecord:
    """The record after a flush that ended half way: what was owned before, and what is written."""
    owned = {}
    for uuid, pending in merged.pending.providers.items():
        if not written.exists(uuid):
            continue
        was, there = before.provider(uuid, pending.name), written.data(uuid)
        aim = wanted.data(uuid).inventory if wanted.exists(uuid) else {}
        arrived = {
            name
            for name in there.inventory.keys() & aim.keys()
            if not differs(there.inventory[name], aim[name])
        }
        owned[uuid] = OwnedProvider(
            pending.name,
            pending.created,
            {
                name: fields
                for name, fields in pending.inventories.items()
                if name in was.inventories or name in arrived
            },
            pending.traits & (was.traits | there.traits),
            pending.aggregates & (was.aggregates | there.aggregates),
            pending.absence,
        )
    return OwnershipRecord.of_providers(owned)


@dataclass
class TreeMerge:
    """Edits a tree, once: adds what is declared, and removes what is owned but not declared.

    Providers that the merge creates get the owner's trait. The merge keeps the inventories that
    are in use, and their providers. Without a policy, it withdraws at once what is not declared.
    `may_move` tells whether the server is new enough to move providers.
    """

    tree: ProviderTree
    record: OwnershipRecord
    owner_trait: str
    in_use: InventoriesInUse = field(default_factory=dict)
    policy: WithdrawalPolicy | None = None
    may_move: Callable[[], bool] = lambda: True

    def __post_init__(self) -> None:
        self._shape = TreeShape(self.tree, self.record, self.owner_trait, self.may_move)
        self._kept: list[str] = []
        self._pending: dict[str, OwnedProvider] = {}
        self._settled: dict[str, OwnedProvider] = {}

    def run(self, declaration: Declaration) -> MergeResult:
        """Merge the declaration."""
        declared = {self._shape.find_or_add(each): each for each in declaration.providers}
        absences = self._hold_unread_and_missing(declared, declaration.unread)
        uuids = self.tree.get_provider_uuids()
        self._children = Counter(self.tree.data(uuid).parent_uuid for uuid in uuids)
        for uuid in reversed(uuids):
            provider = self.tree.data(uuid)
            if uuid in declared:
                self._update(provider, declared[uuid])
            elif uuid in self._settled:
                # The provider is held as it is.
                continue
            elif provider.generation is None:
                # The caller began a tree of which nothing is declared.
                self.tree.remove(uuid)
            elif self.record.provider(uuid, provider.name):
                self._withdraw(provider, absences.get(uuid))
        return MergeResult(
            OwnershipRecord.of_providers(self._pending),
            OwnershipRecord.of_providers(self._settled),
            (*self._shape.kept, *self._kept),
        )

    # -- undeclared providers

    def _hold_unread_and_missing(
        self, declared: Mapping[str, DeclaredProvider], unread: UnreadProviders
    ) -> Mapping[str, Absence]:
        """Hold the owned providers that are not read, or not missing for long enough.

        Returns the absences of the missing ones.
        """
        recorded = {
            uuid: owned for uuid, owned in self.record.providers.items() if self.tree.exists(uuid)
        }
        undeclared = {uuid: owned for uuid, owned in recorded.items() if uuid not in declared}
        missing = {
            uuid: owned for uuid, owned in undeclared.items() if not unread.covers(owned.name)
        }
        for uuid, owned in undeclared.items():
            if uuid not in missing:
                self._hold(uuid, owned, "stays as it is, the driver cannot read it")
        if self.policy is None:
            return {}
        refuse_sudden_loss(recorded, missing.values())
        absences = {uuid: self.policy.absence_of(owned) for uuid, owned in missing.items()}
        for uuid, absence in absences.items():
            if not self.policy.is_due(absence):
                owned = replace(missing[uuid], absence=absence)
                self._hold(uuid, owned, self.policy.describe())
        return absences

    def _hold(self, uuid: str, owned: OwnedProvider, reason: str) -> None:
        """Leave a provider as it is; the owner goes on owning what it owns of it."""
        self._pending[uuid] = self._settled[uuid] = owned
        self._kept.append(f"{owned.name}: {reason}")

    def _withdraw(self, provider: ProviderData, absence: Absence | None) -> None:
        """Delete a provider that is not declared, or else remove what the owner owns of it."""
        owned = self.record.provider(provider.uuid, provider.name)
        obstacle = self._obstacle_to_deletion(provider, owned)
        if owned.created and not obstacle:
            self._pending[provider.uuid] = owned
            self._children[provider.parent_uuid] -= 1
            self.tree.remove(provider.uuid)
            return
        if owned.created:
            self._kept.append(f"{provider.name}: not deleted, {obstacle}")
        self._update(provider, DeclaredProvider(provider.name), absence)

    def _obstacle_to_deletion(self, provider: ProviderData, owned: OwnedProvider) -> str:
        """Why a provider must not be deleted; empty if it may be."""
        obstacles = []
        if provider.uuid in self.in_use:
            obstacles.append("it is in use")
        if foreign := sorted(provider.inventory.keys() - owned.inventories.keys()):
            obstacles.append(f"other writers have inventory on it ({', '.join(foreign)})")
        if self._children[provider.uuid]:
            obstacles.append("there are providers below it")
        return " and ".join(obstacles)

    # -- both

    def _update(
        self, provider: ProviderData, declared: DeclaredProvider, absence: Absence | None = None
    ) -> None:
        """Merge the declaration of one provider; a missing one keeps its absence."""
        owned = self.record.provider(provider.uuid, provider.name)
        if owned.created or provider.generation is None:
            declared = replace(declared, traits=declared.traits | {self.owner_trait})
        if provider.uuid in self.in_use:
            classes = self.in_use[provider.uuid]
            undeclared = undeclared_inventories(provider, declared, owned, classes)
            declared = replace(declared, inventories={**undeclared, **declared.inventories})
            self._kept += [
                f"{provider.name}: inventory {name} not removed, in use" for name in undeclared
            ]
        merged = merge_provider(provider, declared, owned)
        self.tree.update_inventory(provider.uuid, merged.inventory)
        self.tree.update_traits(provider.uuid, merged.traits)
        self.tree.update_aggregates(provider.uuid, merged.aggregates)
        self._pending[provider.uuid] = replace(merged.pending, absence=absence)
        self._settled[provider.uuid] = replace(merged.settled, absence=absence)
