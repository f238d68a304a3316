"""The merge of an owner's declaration into a tree that other owners and writers edit as well. Pure.

An owner owns what it has put there, and what another owner has put there and it declares as well.
So a part goes when the last owner withdraws it. What no owner has put there stays, whether an owner
declares the same or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from roost.model.inventory import DEFAULTS
from roost.model.trees.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.model.trees.difference import (
    AssociationKind,
    Difference,
    ProviderChange,
    ProviderCreation,
    ProviderDeletion,
    ProviderMove,
)
from roost.model.trees.owned import NOTHING, Fields, OwnedParts
from roost.model.trees.owner_names import child_uuid, is_owner_trait, trait_of_owner
from roost.service.errors import Conflict, ConflictCause, ErrorCode, Invalid

FieldsByClass: TypeAlias = Mapping[str, InventoryFields]


@dataclass(slots=True)
class ProviderState:
    """A provider of a tree with its parts, and what each owner owns of it.

    The names of its parts are those of `AssociationKind`.
    """

    uuid: str
    name: str
    parent_uuid: str | None
    inventory: FieldsByClass = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    # The classes of which there are allocations.
    in_use: frozenset[str] = frozenset()
    owners: Mapping[str, OwnedParts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MergedTree:
    """A tree before and after a merge, by uuid, parents before their children."""

    before: dict[str, ProviderState]
    after: dict[str, ProviderState]
    # A line for each part of the declaration that cannot be made true.
    kept: tuple[str, ...]

    @property
    def new(self) -> list[ProviderState]:
        """The providers that come, parents before their children."""
        return [provider for uuid, provider in self.after.items() if uuid not in self.before]

    @property
    def gone(self) -> list[ProviderState]:
        """The providers that go, children before their parents."""
        return [self.before[uuid] for uuid in reversed(self.before) if uuid not in self.after]

    @property
    def moved(self) -> list[ProviderState]:
        """The providers that get another parent."""
        return [
            provider
            for uuid, provider in self.after.items()
            if uuid in self.before and self.before[uuid].parent_uuid != provider.parent_uuid
        ]

    def difference(self) -> Difference:
        """What the merge changes."""
        return Difference(
            creations=tuple(
                ProviderCreation(
                    each.uuid, each.name, each.parent_uuid, self._name(each.parent_uuid)
                )
                for each in self.new
            ),
            moves=tuple(
                ProviderMove(
                    each.uuid,
                    each.name,
                    self.before[each.uuid].parent_uuid,
                    each.parent_uuid or "",
                    self._name(each.parent_uuid) or "",
                )
                for each in self.moved
            ),
            deletions=tuple(ProviderDeletion(each.uuid, each.name) for each in self.gone),
            changes=tuple(self.changes()),
        )

    def changes(self) -> Iterator[ProviderChange]:
        """The parts of providers that change, leaves first."""
        for uuid in reversed(self.after):
            provider = self.after[uuid]
            earlier = self.before.get(uuid, ProviderState(uuid, provider.name, None))
            for kind in AssociationKind:
                was, is_ = kind.of(earlier), kind.of(provider)
                if was != is_:
                    yield ProviderChange(uuid, provider.name, kind, was, is_)

    def _name(self, uuid: str | None) -> str | None:
        return None if uuid is None else self.after[uuid].name


def merge_declaration(
    before: Iterable[ProviderState], declaration: Declaration, owner: str, *, force: bool = False
) -> MergedTree:
    """Merge what the owner declares now into a tree, which is empty for a new tree.

    The declaration has one root at most, and a new root has its uuid. With `force`, the owner takes
    over what belongs to another owner.
    """
    return _OwnersMerge({each.uuid: each for each in before}, owner, force).run(declaration)


class _OwnersMerge:
    """One merge, which edits copies of the providers."""

    def __init__(self, before: Mapping[str, ProviderState], owner: str, force: bool) -> None:
        self._before = before
        self._tree = {uuid: replace(each) for uuid, each in before.items()}
        self._names = {each.name: uuid for uuid, each in before.items()}
        self._owner = owner
        self._trait = trait_of_owner(owner)
        self._force = force
        self._kept: list[str] = []
        # The uuid of each declared provider, and of the declared root above it, by its name.
        self._uuids: dict[str, str] = {}
        self._root_uuids: dict[str, str] = {}
        self._children: Counter[str | None] = Counter()

    def run(self, declaration: Declaration) -> MergedTree:
        self._recover(declaration)
        declared: dict[str, DeclaredProvider] = {}
        for each in declaration.providers:
            uuid = self._place(each)
            if uuid in declared:
                raise Invalid(
                    f"{each.name!r} and {declared[uuid].name!r} are both declared, and are the "
                    f"same provider {uuid}. Declare it once, by the name that it has."
                )
            declared[uuid] = each
        self._children = Counter(each.parent_uuid for each in self._tree.values())
        for uuid in reversed(_top_down(self._tree)):
            provider = self._tree[uuid]
            if uuid in declared:
                self._update(provider, declared[uuid], created=self._is_created(provider))
            elif self._owner in provider.owners:
                self._withdraw(provider)
        after = {uuid: self._tree[uuid] for uuid in _top_down(self._tree)}
        before = {uuid: self._before[uuid] for uuid in _top_down(self._before)}
        return MergedTree(before, after, tuple(self._kept))

    def _is_created(self, provider: ProviderState) -> bool:
        """Whether a declared provider goes when its last owner withdraws it."""
        is_new = provider.uuid not in self._before
        return is_new or any(parts.created for parts in provider.owners.values())

    def _mine(self, provider: ProviderState) -> OwnedParts:
        return provider.owners.get(self._owner, NOTHING)

    def _others(self, provider: ProviderState) -> dict[str, OwnedParts]:
        return {name: parts for name, parts in provider.owners.items() if name != self._owner}

    def _recover(self, declaration: Declaration) -> None:
        """Let an owner that the server does not know own what it declares on providers it marked.

        A client of an older version, or one that went step by step, has marked them.
        """
        if any(self._owner in provider.owners for provider in self._tree.values()):
            return
        declared = {each.uuid or each.name: each for each in declaration.providers}
        for provider in self._tree.values():
            if self._trait not in provider.traits:
                continue
            wanted = declared.get(provider.uuid) or declared.get(provider.name)
            wanted = wanted or DeclaredProvider(provider.name)
            parts = OwnedParts(
                True,
                {name: frozenset(fields) for name, fields in wanted.inventories.items()},
                wanted.traits | {self._trait},
                wanted.aggregates,
            ).among(provider.inventory.keys(), provider.traits, provider.aggregates)
            provider.owners = {**provider.owners, self._owner: parts}

    # -- the place of a declared provider

    def _place(self, declared: DeclaredProvider) -> str:
        """The uuid of a declared provider, which comes to the tree or moves if need be."""
        found = self._find(declared)
        uuid = self._add(declared) if found is None else self._placed(declared, found)
        self._uuids[declared.name] = uuid
        self._root_uuids[declared.name] = self._root_uuids.get(declared.parent or "", uuid)
        return uuid

    def _find(self, declared: DeclaredProvider) -> ProviderState | None:
        uuid = declared.uuid or self._names.get(declared.name)
        found = self._tree.get(uuid or "")
        if found is not None:
            if found.name == declared.name:
                return found
            raise Conflict(
                f"Provider {found.uuid} is declared as {declared.name!r}, but is named "
                f"{found.name!r}. A declaration renames no provider: declare the name that it has.",
                ErrorCode.UUID_TAKEN,
                ConflictCause.EXISTS,
            )
        if declared.name in self._names:
            raise Conflict(
                f"Provider {declared.name!r} is declared with the uuid {declared.uuid}, but has "
                f"{self._names[declared.name]}. Declare that uuid, or none.",
                ErrorCode.DUPLICATE_NAME,
                ConflictCause.EXISTS,
            )
        renamed = self._tree.get(self._new_uuid(declared) or "")
        if renamed is not None:
            self._kept.append(
                f"{renamed.name}: keeps this name, though declared as {declared.name}"
            )
        return renamed

    def _new_uuid(self, declared: DeclaredProvider) -> str | None:
        if declared.uuid is not None or declared.parent is None:
            return declared.uuid
        return child_uuid(self._root_uuids[declared.parent], self._trait, declared.name)

    def _add(self, declared: DeclaredProvider) -> str:
        uuid = self._new_uuid(declared)
        if declared.parent is None and self._tree:
            raise Invalid(
                f"{declared.name!r} is declared without a parent, and is not in the tree of "
                f"{next(iter(self._tree.values())).name!r}. Declare its parent, or name the root "
                "of a new tree in the path."
            )
        assert uuid is not None, "a new root comes with its uuid"
        parent = None if declared.parent is None else self._uuids[declared.parent]
        self._tree[uuid] = ProviderState(uuid, declared.name, parent)
        self._names[declared.name] = uuid
        return uuid

    def _placed(self, declared: DeclaredProvider, found: ProviderState) -> str:
        if declared.parent is None or self._uuids[declared.parent] == found.parent_uuid:
            return found.uuid
        parent_uuid = self._uuids[declared.parent]
        obstacle = self._obstacle_to_move(found, parent_uuid)
        if not obstacle:
            found.parent_uuid = parent_uuid
            return found.uuid
        place = f"below {self._tree[found.parent_uuid].name}" if found.parent_uuid else "a root"
        self._kept.append(
            f"{found.name}: stays {place}, though declared below {declared.parent}; {obstacle}"
        )
        return found.uuid

    def _obstacle_to_move(self, found: ProviderState, parent_uuid: str) -> str:
        """Why a provider stays where it is; empty if it moves."""
        if found.parent_uuid is None:
            return "roots are not moved"
        creators = [name for name, parts in self._others(found).items() if parts.created]
        if not creators and not self._mine(found).created:
            return "another writer created it"
        above: str | None = parent_uuid
        while above is not None:
            if above == found.uuid:
                return "that provider is below it"
            above = self._tree[above].parent_uuid
        if creators:
            self._take_over(found, creators, "its place")
            found.owners = {
                name: replace(parts, created=False) if name in creators else parts
                for name, parts in found.owners.items()
            }
            self._own(found, replace(self._mine(found), created=True))
        return ""

    def _take_over(self, provider: ProviderState, owners: Iterable[str], what: str) -> None:
        """Refuse to change what belongs to other owners, unless the request says `force`."""
        if self._force:
            return
        first = min(owners)
        raise Conflict(
            f"{provider.name}: {what} belongs to the owner {first!r}, and {self._owner!r} declares "
            f"it otherwise. Declare the same, let {first!r} withdraw it, or send force=true.",
            ErrorCode.OWNED_BY_ANOTHER,
        )

    # -- the parts of a provider

    def _withdraw(self, provider: ProviderState) -> None:
        """Delete a provider that is not declared, or else remove what the owner owns of it."""
        created = self._mine(provider).created
        if any(parts.created for parts in self._others(provider).values()):
            # That owner has the provider from now on.
            created = False
        elif created:
            obstacle = self._obstacle_to_deletion(provider)
            if not obstacle:
                self._children[provider.parent_uuid] -= 1
                del self._tree[provider.uuid]
                return
            self._kept.append(f"{provider.name}: not deleted, {obstacle}")
        self._update(provider, DeclaredProvider(provider.name), created=created)

    def _obstacle_to_deletion(self, provider: ProviderState) -> str:
        """Why a provider must not be deleted; empty if it may be."""
        obstacles = []
        if provider.in_use:
            obstacles.append("it is in use")
        foreign = sorted(provider.inventory.keys() - self._mine(provider).inventories.keys())
        if foreign:
            obstacles.append(f"other writers have inventory on it ({', '.join(foreign)})")
        elif others := sorted(self._others(provider)):
            obstacles.append(f"other owners have declared parts of it ({', '.join(others)})")
        if self._children[provider.uuid]:
            obstacles.append("there are providers below it")
        return " and ".join(obstacles)

    def _update(
        self, provider: ProviderState, declared: DeclaredProvider, *, created: bool
    ) -> None:
        """Merge the declaration of one provider, which the owner has `created` or not."""
        mine, others = self._mine(provider), self._others(provider)
        inventories = self._merge_inventories(provider, declared.inventories)
        wanted = self._declared_traits(provider, declared) | (
            {self._trait} if created else frozenset()
        )
        traits = _NamesMerge(
            provider.traits, wanted, mine.traits, _union(each.traits for each in others.values())
        )
        aggregates = _NamesMerge(
            provider.aggregates,
            declared.aggregates,
            mine.aggregates,
            _union(each.aggregates for each in others.values()),
        )
        provider.traits, provider.aggregates = traits.result, aggregates.result
        self._own(provider, OwnedParts(created, inventories, traits.owned, aggregates.owned))

    def _own(self, provider: ProviderState, parts: OwnedParts) -> None:
        others = self._others(provider)
        provider.owners = {**others, self._owner: parts} if parts else others

    def _declared_traits(
        self, provider: ProviderState, declared: DeclaredProvider
    ) -> frozenset[str]:
        """The declared traits, without the marks of other owners that the provider has anyway."""
        marks = {
            trait for trait in declared.traits if is_owner_trait(trait) and trait != self._trait
        }
        if foreign := sorted(marks - provider.traits):
            raise Invalid(
                f"{declared.name}: {foreign[0]} is the trait of another owner. Leave the trait "
                "out, or declare as that owner."
            )
        return declared.traits - marks

    def _merge_inventories(
        self, provider: ProviderState, declared: FieldsByClass
    ) -> dict[str, Fields]:
        """Merge the declared inventories; what the owner owns of them afterwards."""
        mine = self._mine(provider).inventories
        after = {
            name: fields
            for name, fields in provider.inventory.items()
            if name not in mine or name in declared
        }
        owned: dict[str, Fields] = {}
        for name in sorted(mine.keys() & provider.inventory.keys() - declared.keys()):
            self._withdraw_inventory(provider, name, after, owned)
        for name, fields in declared.items():
            self._declare_inventory(provider, name, fields, after, owned)
        provider.inventory = after
        return owned

    def _withdraw_inventory(
        self,
        provider: ProviderState,
        name: str,
        after: dict[str, InventoryFields],
        owned: dict[str, Fields],
    ) -> None:
        """Remove an inventory that the owner no longer declares, unless others need it."""
        present, fields = provider.inventory[name], self._mine(provider).inventories[name]
        theirs = _fields_of(name, self._others(provider))
        if theirs:
            after[name] = {**present, **_defaults(fields - theirs)}
        elif name in provider.in_use:
            self._kept.append(f"{provider.name}: inventory {name} not removed, in use")
            after[name], owned[name] = present, fields

    def _declare_inventory(
        self,
        provider: ProviderState,
        name: str,
        fields: InventoryFields,
        after: dict[str, InventoryFields],
        owned: dict[str, Fields],
    ) -> None:
        """Add or change a declared inventory. An owned field without declaration is default."""
        present, earlier = provider.inventory.get(name), self._mine(provider).inventories.get(name)
        theirs = _fields_of(name, self._others(provider))
        undeclared = _defaults((earlier or frozenset()) - fields.keys() - theirs)
        after[name] = {**(present or {}), **undeclared, **fields}
        if present is None:
            owned[name] = frozenset(fields)
            return
        changed = {key for key, value in after[name].items() if present.get(key) != value}
        if changed & theirs:
            losing = [
                owner
                for owner, parts in self._others(provider).items()
                if changed & parts.inventories.get(name, frozenset())
            ]
            self._take_over(provider, losing, f"inventory {name}")
            provider.owners = {
                owner: _without_inventory(parts, name) if owner in losing else parts
                for owner, parts in provider.owners.items()
            }
        if earlier is not None or changed or theirs:
            owned[name] = frozenset(fields)


class _NamesMerge:
    """The merge of a set of names: what the provider has then, and what the owner owns of it."""

    def __init__(
        self, present: Set[str], declared: Set[str], mine: Set[str], theirs: Set[str]
    ) -> None:
        self.result = frozenset((present - (mine - theirs)) | declared)
        self.owned = frozenset(declared & (mine | (declared - present) | (theirs & present)))


def _union(sets: Iterable[Set[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _fields_of(resource_class: str, owners: Mapping[str, OwnedParts]) -> Fields:
    """The fields of an inventory that these owners own."""
    nothing: Fields = frozenset()
    return _union(parts.inventories.get(resource_class, nothing) for parts in owners.values())


def _defaults(fields: Set[str]) -> dict[str, Any]:
    return {name: DEFAULTS[name] for name in sorted(fields) if name in DEFAULTS}


def _without_inventory(parts: OwnedParts, resource_class: str) -> OwnedParts:
    rest = {name: fields for name, fields in parts.inventories.items() if name != resource_class}
    return replace(parts, inventories=rest)


def _top_down(tree: Mapping[str, ProviderState]) -> list[str]:
    """The uuids of all providers, parents before their children, depth first."""
    children: dict[str | None, list[str]] = {}
    for uuid, provider in tree.items():
        above = provider.parent_uuid if provider.parent_uuid in tree else None
        children.setdefault(above, []).append(uuid)
    found: list[str] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        uuid = waiting.pop()
        found.append(uuid)
        waiting.extend(reversed(children.get(uuid, ())))
    return found
