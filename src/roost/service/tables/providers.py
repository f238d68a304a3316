"""Resource providers: create, show, rename, move, delete."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.model.identifiers import new_uuid
from roost.model.providers import Provider
from roost.service.errors import (
    Conflict,
    ConflictCause,
    ErrorCode,
    Invalid,
    NotFound,
    provider_not_found,
)
from roost.store.connections.errors import Retry
from roost.store.rows import providers
from roost.store.transaction import Finished, Transaction


class Keep:
    """Marks an update that keeps the parent."""


KEEP_PARENT = Keep()


def create_provider(
    transaction: Transaction, name: str, uuid: str | None = None, parent_uuid: str | None = None
) -> Finished[Provider]:
    """A new provider, as a root or below a parent."""
    uuid = uuid or new_uuid()
    prefix = f'Unable to create resource provider "{name}", {uuid}: '
    if not name:
        raise Invalid("name is required: give the provider a name of 1 to 200 characters")
    parent = None
    if parent_uuid is not None:
        if parent_uuid == uuid:
            raise Invalid(
                f"{prefix}parent provider UUID cannot be same as UUID. Leave "
                "parent_provider_uuid out to make a root."
            )
        parent = _find_parent(transaction, parent_uuid, prefix)
        providers.lock_trees(transaction, [parent])
    if providers.is_taken(transaction.connection, uuid=uuid):
        raise Conflict(
            f"Conflicting resource provider uuid: {uuid} already exists.",
            ErrorCode.DUPLICATE_NAME,
            ConflictCause.EXISTS,
        )
    if providers.is_taken(transaction.connection, name=name):
        raise Conflict(
            f"Conflicting resource provider name: {name} already exists.",
            ErrorCode.DUPLICATE_NAME,
            ConflictCause.EXISTS,
        )
    return transaction.finish(providers.insert_provider(transaction, uuid, name, parent))


def get_provider(connection: Connection, uuid: str) -> Provider:
    """The provider with this uuid."""
    provider = providers.find_provider(connection, uuid)
    if provider is None:
        raise provider_not_found(uuid)
    return provider


def get_locked_provider(transaction: Transaction, uuid: str) -> Provider:
    """The provider with this uuid. No other transaction changes it before this one ends."""
    provider = providers.lock_provider(transaction, uuid)
    if provider is None:
        raise provider_not_found(uuid)
    return provider


def update_provider(
    transaction: Transaction,
    uuid: str,
    name: str,
    parent_uuid: str | Keep | None = KEEP_PARENT,
    may_reparent: bool = True,
) -> Finished[Provider]:
    """Rename the provider and, unless the update keeps the parent, move its subtree."""
    provider = get_provider(transaction.connection, uuid)
    prefix = f"Unable to save resource provider {uuid}: "
    if not name:
        raise Invalid(f"{prefix}name is required: give the provider 1 to 200 characters")
    if not isinstance(parent_uuid, Keep):
        _move(transaction, provider, parent_uuid, may_reparent, prefix)
    if name != provider.name:
        if providers.is_taken(transaction.connection, name=name, other_than=provider):
            raise Conflict(
                f"Conflicting resource provider {name} already exists.",
                ErrorCode.DUPLICATE_NAME,
                ConflictCause.EXISTS,
            )
        providers.rename_provider(transaction, provider, name)
    return transaction.finish(get_provider(transaction.connection, uuid))


def _move(
    transaction: Transaction,
    provider: Provider,
    parent_uuid: str | None,
    may_reparent: bool,
    prefix: str,
) -> None:
    if parent_uuid == provider.parent_uuid:
        return
    if provider.parent_uuid is not None and not may_reparent:
        if parent_uuid is None:
            raise Invalid(
                f"{prefix}un-parenting a provider is not currently allowed: it needs "
                "microversion 1.37."
            )
        _find_parent(transaction, parent_uuid, prefix)
        raise Invalid(
            f"{prefix}re-parenting a provider is not currently allowed: it needs microversion 1.37."
        )
    parent = None if parent_uuid is None else _find_parent(transaction, parent_uuid, prefix)
    # One statement locks all rows that change, in the order of ids. Claims lock in the same order.
    subtree = providers.subtree_ids(transaction.connection, provider)
    both = [provider] if parent is None else [provider, parent]
    providers.lock_trees(transaction, both, also=subtree)
    if providers.subtree_ids(transaction.connection, provider) != subtree:
        raise Retry
    if parent is not None and parent.id in subtree:
        raise Invalid(f"{prefix}creating loop in the provider tree is not allowed.")
    providers.move_provider(transaction, provider, subtree, parent)


def _find_parent(transaction: Transaction, parent_uuid: str, prefix: str) -> Provider:
    parent = providers.find_provider(transaction.connection, parent_uuid)
    if parent is None:
        raise Invalid(f"{prefix}parent provider UUID does not exist. ({parent_uuid})")
    return parent


def delete_provider(transaction: Transaction, uuid: str) -> Finished[None]:
    """Remove a provider that has neither children nor allocations."""
    provider = providers.find_provider(transaction.connection, uuid)
    if provider is None:
        raise NotFound(f"No resource provider with uuid {uuid} found for delete")
    # The lock of the tree keeps new children away, the lock of the provider keeps claims away.
    providers.lock_trees(transaction, [provider])
    if providers.has_children(transaction.connection, provider):
        raise Conflict(
            f"Unable to delete parent resource provider {uuid}: It has child resource providers.",
            ErrorCode.PROVIDER_CANNOT_DELETE_PARENT,
            ConflictCause.IN_USE,
        )
    if providers.has_allocations(transaction.connection, provider):
        raise Conflict(
            f"Unable to delete resource provider {uuid}: Resource provider has allocations.",
            ErrorCode.PROVIDER_IN_USE,
            ConflictCause.IN_USE,
        )
    providers.delete_provider(transaction, provider)
    return transaction.finish()
