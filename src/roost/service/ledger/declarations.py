"""Declarations of whole trees: each is one transaction, in which the tree is locked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from roost.model.identifiers import canonical_uuid, is_custom_name, is_uuid, new_uuid
from roost.model.inventory import Inventory
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.difference import AssociationKind, Difference, ProviderChange
from roost.model.trees.owned import OwnedParts
from roost.service.errors import Conflict, ConflictCause, ErrorCode, Invalid
from roost.service.ledger.tree_merge import MergedTree, ProviderState, merge_declaration
from roost.service.questions.provider_list import find_referenced, no_such_provider
from roost.service.tables.inventories import hold_classes
from roost.store.connections.errors import Retry
from roost.store.rows import aggregates, inventories, ownership, providers, traits, vocabulary
from roost.store.rows.inventories import AMOUNTS
from roost.store.rows.ownership import NewOwnership
from roost.store.rows.providers import MemberRow, NewChild
from roost.store.rows.trees import TreeRows, lock_tree
from roost.store.transaction import Finished, Transaction

_EMPTY = TreeRows((), (), (), (), frozenset(), ())


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """What an owner declares about one tree.

    `generations` has those that the client has read, by the declared name.
    """

    owner: str
    declaration: Declaration
    generations: Mapping[str, int]
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredTree:
    """What a declaration changed in a tree, and what it could not change."""

    name: str
    difference: Difference
    kept: tuple[str, ...]


def declare_tree(
    transaction: Transaction, reference: str, request: TreeRequest
) -> Finished[DeclaredTree]:
    """Make a declaration true in the tree of a provider, or in a new tree, all or nothing.

    What the owner no longer declares is withdrawn. What is in use stays, and is told.
    """
    found = find_referenced(transaction.connection, reference)
    rows = _EMPTY if found is None else lock_tree(transaction, found)
    declaration = request.declaration
    if found is None:
        declaration = _with_new_root(declaration, reference)
    _check_generations(rows.members, request)
    merged = merge_declaration(_states(rows), declaration, request.owner, force=request.force)
    taken = _taken(transaction, merged)
    if taken is not None:
        if found is None and find_referenced(transaction.connection, reference) is not None:
            # Another request has made the tree since.
            raise Retry
        raise taken
    _TreeWriter(transaction, rows, merged).write()
    top = declaration.roots[0].name if declaration.roots else rows.members[0].name
    return transaction.finish(DeclaredTree(top, merged.difference(), merged.kept))


def _with_new_root(declaration: Declaration, reference: str) -> Declaration:
    """The declaration of a tree that does not exist: its root gets its uuid."""
    if not declaration.roots:
        raise no_such_provider(reference)
    root = declaration.roots[0]
    uuid = canonical_uuid(reference) if is_uuid(reference) else None
    if reference not in (root.name, root.uuid) and uuid != (root.uuid or uuid):
        raise _another_root(reference, root)
    if uuid is None and reference != root.name:
        raise _another_root(reference, root)
    named = replace(root, uuid=root.uuid or uuid or new_uuid())
    others = (each for each in declaration.providers if each is not root)
    return replace(declaration, providers=(named, *others))


def _another_root(reference: str, root: DeclaredProvider) -> Invalid:
    return Invalid(
        f"No provider has the uuid or name {reference[:200]!r}, and the declaration begins with "
        f"{root.name!r}. Name that provider in the path, to make a new tree."
    )


def _check_generations(members: Sequence[MemberRow], request: TreeRequest) -> None:
    """Refuse a declaration of a provider that has changed since the client read it."""
    if not request.generations:
        return
    present = {member.uuid: member for member in members}
    present |= {member.name: member for member in members}
    for declared in request.declaration.providers:
        wanted = request.generations.get(declared.name)
        if wanted is None:
            continue
        member = present.get(declared.uuid or declared.name)
        if member is None or member.generation != wanted:
            now = "does not exist" if member is None else f"is at generation {member.generation}"
            raise Conflict(
                f"{declared.name!r} {now}, and was declared at generation {wanted}. Read the tree "
                "again, then repeat the declaration; without `generation` it needs no reading.",
                ErrorCode.CONCURRENT_UPDATE,
                ConflictCause.PROVIDER_GENERATION,
            )


def _taken(transaction: Transaction, merged: MergedTree) -> Conflict | None:
    """The refusal of new providers whose uuid or name another provider has; `None` if none has."""
    new = merged.new
    if not new:
        return None
    taken = providers.find_taken(
        transaction.connection, [each.uuid for each in new], [each.name for each in new]
    )
    if taken is None:
        return None
    uuid, name = taken
    holder = providers.find_provider(transaction.connection, uuid)
    if holder is None:
        sentence = f"A row without a root has the name {name!r}: `roost db check` tells more."
    else:
        sentence = (
            f"A provider {name!r} with the uuid {uuid} exists already, in the tree of "
            f"{holder.root_uuid}. Leave it out, or move, rename or merge that one."
        )
    return Conflict(sentence, ErrorCode.DUPLICATE_NAME, ConflictCause.EXISTS)


def _states(rows: TreeRows) -> Iterator[ProviderState]:
    """The providers of the rows, with all their parts."""
    uuids = {member.id: member.uuid for member in rows.members}
    found = {
        member.id: ProviderState(
            member.uuid,
            member.name,
            # A damaged database may lack the parent.
            None if member.parent_id is None else uuids.get(member.parent_id),
        )
        for member in rows.members
    }
    amounts: dict[int, dict[str, dict[str, int | float]]] = {}
    in_use: dict[int, set[str]] = {}
    for row in rows.inventories:
        fields = {name: getattr(row, name) for name in AMOUNTS}
        amounts.setdefault(row.provider_id, {})[row.class_name] = fields
        if (row.provider_id, row.class_id) in rows.allocated:
            in_use.setdefault(row.provider_id, set()).add(row.class_name)
    names = _grouped((row.provider_id, row.name) for row in rows.traits)
    members = _grouped((row.provider_id, _canonical(row.name)) for row in rows.aggregates)
    owners: dict[int, dict[str, OwnedParts]] = {}
    for owned in rows.ownership:
        if uuids[owned.provider_id] == owned.provider_uuid:
            parts = OwnedParts.parse(owned.content)
            owners.setdefault(owned.provider_id, {})[owned.owner] = parts
    for id_, state in found.items():
        state.inventory = amounts.get(id_, {})
        state.traits = frozenset(names.get(id_, ()))
        state.aggregates = frozenset(members.get(id_, ()))
        state.in_use = frozenset(in_use.get(id_, ()))
        state.owners = owners.get(id_, {})
        yield state


def _grouped(pairs: Iterable[tuple[int, str]]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return found


def _canonical(uuid: str) -> str:
    return canonical_uuid(uuid) if is_uuid(uuid) else uuid


class _TreeWriter:
    """Writes what a merge changes, many rows by each statement."""

    def __init__(self, transaction: Transaction, rows: TreeRows, merged: MergedTree) -> None:
        self._transaction = transaction
        self._rows = rows
        self._merged = merged
        self._members = {member.uuid: member for member in rows.members}
        self._ids = {member.uuid: member.id for member in rows.members}
        by_kind: dict[AssociationKind, list[ProviderChange]] = {
            kind: [] for kind in AssociationKind
        }
        for change in merged.changes():
            by_kind[change.kind].append(change)
        self._changes: Mapping[AssociationKind, Sequence[ProviderChange]] = by_kind
        states = merged.after or merged.before
        self._root_uuid = next(iter(states), "")

    def write(self) -> None:
        class_ids, trait_ids = self._ensure_classes(), self._ensure_traits()
        self._create()
        self._move()
        self._write_inventories(class_ids)
        self._write_aggregates()
        self._write_traits(trait_ids)
        changed = {change.uuid for changes in self._changes.values() for change in changes}
        present = sorted(self._ids[uuid] for uuid in changed if uuid in self._members)
        providers.increment_generations(self._transaction, present)
        gone = [self._members[provider.uuid] for provider in self._merged.gone]
        if gone:
            providers.delete_providers(self._transaction, gone, self._root_uuid)
        self._write_ownership()

    def _changed(self, kind: AssociationKind) -> list[tuple[int, str]]:
        return [(self._ids[change.uuid], change.uuid) for change in self._changes[kind]]

    # -- names

    def _ensure_classes(self) -> Mapping[str, int]:
        """The ids of all classes of changed inventories; missing custom classes are inserted."""
        names: dict[str, str] = {}
        for change in self._changes[AssociationKind.INVENTORY]:
            names |= dict.fromkeys(change.after, change.name)
        known = vocabulary.resource_class_ids(self._transaction.connection, names)
        missing = _new_names("resource class", names, known)
        if missing:
            vocabulary.insert_resource_classes(self._transaction, missing)
        return hold_classes(self._transaction, names)

    def _ensure_traits(self) -> Mapping[str, int]:
        """The ids of all traits that come or go; missing custom traits are inserted."""
        names: dict[str, str] = {}
        for change in self._changes[AssociationKind.TRAITS]:
            names |= dict.fromkeys(change.before ^ change.after, change.name)
        known = vocabulary.trait_ids(self._transaction.connection, names)
        missing = _new_names("trait", names, known)
        if missing:
            vocabulary.insert_traits(self._transaction, missing)
            known = vocabulary.trait_ids(self._transaction.connection, names)
        return known

    # -- providers

    def _create(self) -> None:
        """Insert the new providers level by level, from the top."""
        waiting = self._merged.new
        if waiting and waiting[0].parent_uuid is None:
            root = providers.insert_provider(
                self._transaction, waiting[0].uuid, waiting[0].name, None
            )
            self._ids[root.uuid] = root.id
            waiting = waiting[1:]
        while waiting:
            level = [each for each in waiting if each.parent_uuid in self._ids]
            new = [
                NewChild(each.uuid, each.name, self._ids[each.parent_uuid or ""]) for each in level
            ]
            root_id = self._ids[self._root_uuid]
            self._ids |= providers.insert_children(self._transaction, new, root_id, self._root_uuid)
            waiting = [each for each in waiting if each.uuid not in self._ids]

    def _move(self) -> None:
        parents = {
            (self._ids[each.uuid], each.uuid): self._ids[each.parent_uuid or ""]
            for each in self._merged.moved
        }
        providers.move_within_tree(self._transaction, parents, self._root_uuid)

    # -- parts of providers

    def _write_inventories(self, class_ids: Mapping[str, int]) -> None:
        changes = self._changes[AssociationKind.INVENTORY]
        if not changes:
            return
        present = {(row.provider_id, row.class_id): row.id for row in self._rows.inventories}
        known = {row.class_name: row.class_id for row in self._rows.inventories}
        wanted: dict[tuple[int, int], Inventory] = {}
        removed: list[tuple[int, int]] = []
        for change in changes:
            id_ = self._ids[change.uuid]
            removed += [(id_, known[name]) for name in change.before.keys() - change.after.keys()]
            for name, fields in change.after.items():
                if fields != change.before.get(name):
                    inventory = Inventory(name, **fields)
                    _check_capacity(change.name, inventory)
                    wanted[id_, class_ids[name]] = inventory
        inventories.change_inventories(
            self._transaction,
            self._changed(AssociationKind.INVENTORY),
            wanted=wanted,
            present=present,
            removed=removed,
        )

    def _write_aggregates(self) -> None:
        changes = self._changes[AssociationKind.AGGREGATES]
        if not changes:
            return
        joining = {uuid for change in changes for uuid in change.after - change.before}
        ids = aggregates.ensure_aggregates(self._transaction, joining)
        # The reference may have stored several spellings of one uuid.
        stored: dict[tuple[int, str], list[int]] = {}
        for row in self._rows.aggregates:
            stored.setdefault((row.provider_id, _canonical(row.name)), []).append(row.id)
        joined: list[tuple[int, int]] = []
        left: list[tuple[int, int]] = []
        for change in changes:
            id_ = self._ids[change.uuid]
            joined += [(id_, ids[uuid][0]) for uuid in sorted(change.after - change.before)]
            for uuid in sorted(change.before - change.after):
                left += [(id_, aggregate_id) for aggregate_id in stored[id_, uuid]]
        aggregates.change_memberships(
            self._transaction,
            self._changed(AssociationKind.AGGREGATES),
            joined=joined,
            left=left,
        )

    def _write_traits(self, trait_ids: Mapping[str, int]) -> None:
        changes = self._changes[AssociationKind.TRAITS]
        if not changes:
            return
        pairs = [(self._ids[change.uuid], change) for change in changes]
        traits.change_traits(
            self._transaction,
            self._changed(AssociationKind.TRAITS),
            add=[
                (id_, trait_ids[name])
                for id_, change in pairs
                for name in sorted(change.after - change.before)
            ],
            remove=[
                (id_, trait_ids[name])
                for id_, change in pairs
                for name in sorted(change.before - change.after)
            ],
        )

    # -- ownership

    def _write_ownership(self) -> None:
        """Replace the rows of owners that own something else now, or nothing."""
        stored = {
            (row.provider_uuid, row.owner): row
            for row in self._rows.ownership
            if self._ids.get(row.provider_uuid) == row.provider_id
        }
        # The ids of rows that stay as they are.
        right: set[int] = set()
        new: list[NewOwnership] = []
        for provider in self._merged.after.values():
            for owner, parts in provider.owners.items():
                row = stored.get((provider.uuid, owner))
                if row is not None and OwnedParts.parse(row.content) == parts:
                    right.add(row.id)
                    continue
                new.append(NewOwnership(owner, self._ids[provider.uuid], provider.uuid, parts))
        ownership.change_ownership(
            self._transaction,
            outdated=[row.id for row in self._rows.ownership if row.id not in right],
            emptied=[self._ids[provider.uuid] for provider in self._merged.new],
            rows=new,
        )


def _new_names(kind: str, places: Mapping[str, str], known: Collection[str]) -> list[str]:
    """Those of the names that are not known yet; `Invalid` for one that no client may add.

    `places` has a provider for each name.
    """
    missing = sorted(name for name in places if name not in known)
    for name in missing:
        if not is_custom_name(name):
            raise Invalid(
                f"{places[name]}: there is no {kind} {name}. Use one that exists, or begin the "
                "name of a new one with CUSTOM_."
            )
    return missing


def _check_capacity(provider: str, inventory: Inventory) -> None:
    if int(inventory.capacity) < 0:
        raise Invalid(
            f"{provider}: {inventory.reserved} of {inventory.resource_class} are reserved, of a "
            f"total of {inventory.total}. Declare both, and reserve no more than the total."
        )
