"""Adoption: a provider gets another uuid or name, or takes over all that another provider has.

A reinstalled host comes with a new uuid, or under another name. Its consumers still run, so their
allocations have to follow. Each use case here is one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.model.identifiers import canonical_uuid
from roost.model.inventory import Inventory
from roost.model.providers import Provider
from roost.model.trees.owned import NOTHING
from roost.service.errors import Conflict, ConflictCause, ErrorCode, Invalid
from roost.service.questions.provider_list import resolve_provider
from roost.service.tables.inventories import hold_classes
from roost.store.connections.errors import Retry
from roost.store.journal.writing import record_usages
from roost.store.rows import aggregates, claims, inventories, ownership, providers, traits
from roost.store.rows.claims import AllocationRow, ClaimScope, LockedRows, WantedNames
from roost.store.rows.consumers import consumers_of_provider
from roost.store.transaction import Finished, Transaction

_NO_NAMES = WantedNames((), (), (), ())
# What separates the name of a host from the rest, in the names of providers below it.
_SEPARATORS = "_-:./"


@dataclass(frozen=True, slots=True)
class Renamed:
    """A provider with its new name, and the name that it had."""

    provider: Provider
    was: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What a provider has taken over from another one, which exists no more."""

    target: Provider
    source: Provider
    # How many consumers hold from the target what they held from the source.
    consumers: int
    resource_classes: Sequence[str]
    traits: Sequence[str]
    aggregates: Sequence[str]
    children: Sequence[Provider]


def adopt_provider(
    transaction: Transaction, reference: str, uuid: str
) -> Finished[tuple[Provider, Provider]]:
    """Give the provider another uuid; it keeps all that it has. Returns it before and after."""
    before = resolve_provider(transaction.connection, reference)
    uuid = canonical_uuid(uuid)
    if uuid == before.uuid:
        return transaction.finish((before, before))
    providers.lock_trees(transaction, [before])
    holder = providers.find_provider(transaction.connection, uuid)
    if holder is not None:
        raise Conflict(
            f"The provider {holder.name!r} has the uuid {uuid}. Merge {before.name!r} into it to "
            "keep the allocations of both.",
            ErrorCode.UUID_TAKEN,
            ConflictCause.EXISTS,
        )
    if providers.is_taken(transaction.connection, uuid=uuid):
        raise Conflict(
            f"A row without a root has the uuid {uuid}: `roost db check` tells more.",
            ErrorCode.UUID_TAKEN,
            ConflictCause.EXISTS,
        )
    providers.set_uuid(transaction, before, uuid)
    ownership.follow_uuid(transaction, before.id, before.uuid, uuid)
    return transaction.finish((before, resolve_provider(transaction.connection, uuid)))


def rename_tree(
    transaction: Transaction, reference: str, name: str, with_descendants: bool
) -> Finished[list[Renamed]]:
    """Give the provider another name; on request also to those below that begin with its name."""
    top = resolve_provider(transaction.connection, reference)
    subtree = providers.subtree_ids(transaction.connection, top) if with_descendants else [top.id]
    providers.lock_trees(transaction, [top], also=subtree)
    if with_descendants and providers.subtree_ids(transaction.connection, top) != subtree:
        raise Retry
    found = providers.find_by_ids(transaction.connection, subtree)
    changed = {
        provider.id: _new_name(provider.name, top.name, name)
        for provider in found
        if provider.id == top.id or _begins_with(provider.name, top.name)
    }
    _check_names(transaction.connection, found, changed)
    _write_names(transaction, found, changed)
    was = {provider.id: provider.name for provider in found}
    after = providers.find_by_ids(transaction.connection, changed)
    return transaction.finish([Renamed(each, was[each.id]) for each in after])


def merge_providers(
    transaction: Transaction, source_reference: str, target_reference: str, may_exceed: bool
) -> Finished[Merged]:
    """Let the target take over all that the source has, and delete the source.

    Allocations, traits, aggregates and children move. So does an inventory of a class of which the
    target has none; otherwise the inventory of the target stays as it is.
    """
    connection = transaction.connection
    source = resolve_provider(connection, source_reference)
    target = resolve_provider(connection, target_reference)
    subtree = providers.subtree_ids(connection, source)
    if target.id in subtree:
        raise Invalid(
            f"{source.name!r} cannot be merged into {target.name!r}, which is the same provider or "
            "below it. Name a provider outside of its subtree."
        )
    rows = _lock(transaction, source, target, subtree)
    connection = transaction.connection
    moving = _moving_inventories(connection, source, target)
    if not may_exceed:
        _check_room(connection, source, target)
    class_ids = hold_classes(transaction, moving)
    children = providers.children_of(connection, source)
    _move_allocations(transaction, rows, source, target)
    _move_inventories(transaction, target, moving, class_ids)
    gained_traits = _move_traits(transaction, source, target)
    gained_aggregates = _move_aggregates(transaction, source, target)
    _move_ownership(transaction, source, target, (moving, gained_traits, gained_aggregates))
    for child in children:
        below = providers.subtree_ids(transaction.connection, child)
        providers.move_provider(transaction, child, below, target)
    providers.delete_provider(transaction, source)
    providers.increment_generations(transaction, [target.id])
    record_usages(transaction, [(target.id, target.uuid, None)])
    return transaction.finish(
        Merged(
            target,
            source,
            len(rows.consumers),
            sorted(moving),
            gained_traits,
            gained_aggregates,
            children,
        )
    )


def _lock(
    transaction: Transaction, source: Provider, target: Provider, subtree: Sequence[int]
) -> LockedRows:
    """Lock the consumers of the source, then all providers; `Retry` if something has changed."""
    consumers = consumers_of_provider(transaction.connection, source.id)
    roots = [source.root_uuid, target.root_uuid, target.uuid]
    uuids = [provider.uuid for provider in providers.find_by_ids(transaction.connection, subtree)]
    scope = ClaimScope(consumers, (), _NO_NAMES, replaces=True)
    rows = claims.lock_rows(transaction, scope, {*roots, *uuids})
    connection = transaction.connection
    for provider in (source, target):
        now = providers.find_provider(connection, provider.uuid)
        if now is None or (now.root_id, now.parent_id) != (provider.root_id, provider.parent_id):
            raise Retry
    if providers.subtree_ids(connection, source) != list(subtree):
        raise Retry
    if consumers_of_provider(connection, source.id) != consumers:
        raise Retry
    held = {row.consumer_uuid for row in rows.held if row.provider_id == source.id}
    if not held.issuperset(consumers):
        raise Conflict(
            f"Allocations of {source.name!r} belong to consumers that have no row. Nothing was "
            "changed. Run `roost db sync --repair`, then repeat the merge.",
            ErrorCode.PROVIDER_IN_USE,
            ConflictCause.IN_USE,
        )
    return rows


def _moving_inventories(
    connection: Connection, source: Provider, target: Provider
) -> dict[str, Inventory]:
    theirs, own = (_inventories(connection, provider) for provider in (source, target))
    return {name: inventory for name, inventory in theirs.items() if name not in own}


def _check_room(connection: Connection, source: Provider, target: Provider) -> None:
    """Refuse a merge after which consumers hold more than the capacity of the target."""
    added, used = (_usages(connection, provider) for provider in (source, target))
    for name, inventory in _inventories(connection, target).items():
        amount = added.get(name, 0)
        if amount and not inventory.fits(amount, used.get(name, 0)):
            raise Conflict(
                f"Consumers hold {amount} {name} of {source.name!r}, and {target.name!r} has room "
                f"for {max(0, int(inventory.capacity) - used.get(name, 0))} more. Enlarge its "
                "inventory, or send force.",
                ErrorCode.NO_ROOM,
                ConflictCause.CAPACITY,
            )


def _inventories(connection: Connection, provider: Provider) -> Mapping[str, Inventory]:
    found = inventories.provider_inventories(connection, provider.uuid)
    return {} if found is None else found[1]


def _usages(connection: Connection, provider: Provider) -> Mapping[str, int]:
    found = inventories.provider_usages(connection, provider.uuid)
    return {} if found is None else found[1]


def _move_allocations(
    transaction: Transaction, rows: LockedRows, source: Provider, target: Provider
) -> None:
    """Write what the consumers hold again, with the target in place of the source."""
    held: dict[tuple[int, str, int], int] = {}
    for row in rows.held:
        key = _moved_key(row, source, target)
        held[key] = held.get(key, 0) + row.used
    if not held:
        return
    claims.delete_allocations(transaction, rows.held)
    claims.insert_allocations(transaction, [(*key, used) for key, used in held.items()])
    claims.increment_consumers(transaction, [row.id for row in rows.consumers])


def _moved_key(row: AllocationRow, source: Provider, target: Provider) -> tuple[int, str, int]:
    provider_id = target.id if row.provider_id == source.id else row.provider_id
    return provider_id, row.consumer_uuid, row.class_id


def _move_inventories(
    transaction: Transaction,
    target: Provider,
    moving: Mapping[str, Inventory],
    class_ids: Mapping[str, int],
) -> None:
    if moving:
        wanted = {(target.id, class_ids[name]): inventory for name, inventory in moving.items()}
        inventories.change_inventories(
            transaction, [(target.id, target.uuid)], wanted=wanted, present={}
        )


def _move_traits(transaction: Transaction, source: Provider, target: Provider) -> list[str]:
    """Give the target the traits of the source; returns those that are new to it."""
    theirs, own = (
        traits.provider_traits(transaction.connection, provider.uuid)
        for provider in (source, target)
    )
    known = {trait.id for trait in own[1]} if own else set()
    new = [trait for trait in (theirs[1] if theirs else ()) if trait.id not in known]
    if new:
        traits.change_provider_traits(transaction, target, [trait.id for trait in new], ())
    return [trait.name for trait in new]


def _move_aggregates(transaction: Transaction, source: Provider, target: Provider) -> list[str]:
    """Make the target a member of the aggregates of the source; returns those that are new."""
    theirs, own = (
        aggregates.provider_aggregates(transaction.connection, provider.uuid)
        for provider in (source, target)
    )
    known = own[1] if own else []
    new = [uuid for uuid in (theirs[1] if theirs else ()) if uuid not in known]
    if new:
        ids = aggregates.ensure_aggregates(transaction, [*known, *new])
        aggregates.replace_provider_aggregates(
            transaction, target, [found[0] for found in ids.values()], moves_generation=False
        )
    return new


def _move_ownership(
    transaction: Transaction,
    source: Provider,
    target: Provider,
    moved: tuple[Collection[str], Collection[str], Collection[str]],
) -> None:
    """Let the owners of what has moved own it on the target: inventories, traits, aggregates."""
    found = ownership.owners_of(transaction.connection, [source.id, target.id])
    owners = dict(found.get(target.id, {}))
    classes, traits_, aggregates_ = map(set, moved)
    for owner, parts in found.get(source.id, {}).items():
        gained = replace(parts.among(classes, traits_, aggregates_), created=False)
        if gained:
            owners[owner] = owners.get(owner, NOTHING).united(gained)
    if owners != found.get(target.id, {}):
        ownership.replace_owners(transaction, target.id, target.uuid, owners)


def _begins_with(name: str, host: str) -> bool:
    return name.startswith(host) and name[len(host) : len(host) + 1] in set(_SEPARATORS)


def _new_name(name: str, old_host: str, new_host: str) -> str:
    return new_host + name[len(old_host) :]


def _check_names(
    connection: Connection, found: Collection[Provider], changed: Mapping[int, str]
) -> None:
    """Refuse names that are too long, or that another provider has."""
    own = {provider.id: provider for provider in found}
    for id_, name in changed.items():
        if not 1 <= len(name) <= 200:
            raise Invalid(
                f"The name of {own[id_].name!r} would have {len(name)} characters; a name has 1 to "
                "200. Choose another one."
            )
        holder = providers.find_provider_by_name(connection, name)
        if holder is None and providers.is_taken(connection, name=name):
            raise Conflict(
                f"A row without a root has the name {name!r}: `roost db check` tells more.",
                ErrorCode.DUPLICATE_NAME,
                ConflictCause.EXISTS,
            )
        if holder is not None and holder.id not in changed:
            raise Conflict(
                f"A provider already has the name {name!r}, with the uuid {holder.uuid}. Choose "
                "another name, or merge the two.",
                ErrorCode.DUPLICATE_NAME,
                ConflictCause.EXISTS,
            )


def _write_names(
    transaction: Transaction, found: Collection[Provider], changed: Mapping[int, str]
) -> None:
    """Write the names in an order in which no provider gets a name that is still in use."""
    renamed = [each for each in found if changed.get(each.id, each.name) != each.name]
    # Longer names go first if they grow: `a_b` becomes `a_b_b` before `a` becomes `a_b`.
    grow = any(len(changed[each.id]) > len(each.name) for each in renamed)
    for provider in sorted(renamed, key=lambda each: len(each.name), reverse=grow):
        providers.rename_provider(transaction, provider, changed[provider.id])
