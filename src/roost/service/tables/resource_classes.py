"""Resource classes: list, show, create, rename and delete them."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.model.identifiers import Name
from roost.service.errors import Conflict, ConflictCause, Invalid, NotFound
from roost.store.rows import vocabulary
from roost.store.rows.vocabulary import FIRST_CUSTOM_CLASS_ID
from roost.store.transaction import Finished, Transaction


def list_resource_classes(connection: Connection) -> list[Name]:
    """All classes, standard and custom."""
    return vocabulary.list_resource_classes(connection)


def get_resource_class(connection: Connection, name: str) -> Name:
    """The class of this name."""
    return _found(vocabulary.find_resource_class(connection, name), name)


def create_resource_class(transaction: Transaction, name: str) -> Finished[None]:
    """Create a custom class."""
    if vocabulary.find_resource_class(transaction.connection, name) is not None:
        raise Conflict(
            f"Conflicting resource class already exists: {name}", cause=ConflictCause.EXISTS
        )
    vocabulary.insert_resource_classes(transaction, [name])
    return transaction.finish()


def ensure_resource_class(transaction: Transaction, name: str) -> Finished[bool]:
    """Create the custom class if it does not exist; return whether it was created."""
    is_new = vocabulary.find_resource_class(transaction.connection, name) is None
    if is_new:
        vocabulary.insert_resource_classes(transaction, [name])
    return transaction.finish(is_new)


def rename_resource_class(transaction: Transaction, name: str, new_name: str) -> Finished[Name]:
    """Rename a custom class; its inventories and allocations get the new name."""
    resource_class = get_resource_class(transaction.connection, name)
    if resource_class.id < FIRST_CUSTOM_CLASS_ID:
        raise Invalid(f"Cannot update standard resource class {name}")
    if new_name != name:
        if vocabulary.find_resource_class(transaction.connection, new_name) is not None:
            raise Conflict(f"Resource class already exists: {new_name}", cause=ConflictCause.EXISTS)
        vocabulary.rename_resource_class(transaction, resource_class, new_name)
    return transaction.finish(get_resource_class(transaction.connection, new_name))


def delete_resource_class(transaction: Transaction, name: str) -> Finished[None]:
    """Delete a custom class that no inventory has."""
    resource_class = _found(vocabulary.lock_resource_class(transaction, name), name)
    prefix = "Error in delete resource class: "
    if resource_class.id < FIRST_CUSTOM_CLASS_ID:
        raise Invalid(f"{prefix}Cannot delete standard resource class {name}.")
    if vocabulary.resource_class_is_used(transaction.connection, resource_class):
        raise Conflict(
            f"{prefix}Cannot delete resource class {name}. Class is in use in inventory.",
            cause=ConflictCause.IN_USE,
        )
    vocabulary.delete_resource_class(transaction, resource_class)
    return transaction.finish()


def _found(resource_class: Name | None, name: str) -> Name:
    if resource_class is None:
        raise NotFound(f"No such resource class {name}")
    return resource_class
