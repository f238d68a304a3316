"""The names of resource classes and traits, standard and custom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import os_resource_classes
import os_traits
from sqlalchemy import (
    Connection,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    func,
    select,
    update,
)

from roost.model.identifiers import Name, is_custom
from roost.store.journal.writing import ChangeKind, record_vocabulary_change
from roost.store.statements import InsertRows, Statement
from roost.store.tables import (
    inventories,
    resource_classes,
    resource_provider_traits,
    traits,
)
from roost.store.transaction import Finished, Transaction


def _names(table: Table) -> Select[Any]:
    modified_at = func.coalesce(table.c.updated_at, table.c.created_at)
    return select(table.c.id, table.c.name, modified_at).order_by(table.c.id)


# The lowest id of a custom class. The id of a standard class is its position in the library.
FIRST_CUSTOM_CLASS_ID = 10_000

_CLASSES = _names(resource_classes)
_CLASS = _CLASSES.where(resource_classes.c.name == bindparam("name"))
_TRAITS = _names(traits)
_TRAIT = _TRAITS.where(traits.c.name == bindparam("name"))
_CLASS_ID = select(resource_classes.c.id, resource_classes.c.name)
_CLASS_IDS = Statement.among(resource_classes.c.name, _CLASS_ID)
_HOLD_CLASSES = Statement.among(
    resource_classes.c.name, _CLASS_ID.with_for_update(read=True, key_share=True)
)
_TRAIT_IDS = Statement.among(traits.c.name, select(traits.c.id, traits.c.name))
_LOCK_CLASS = Statement(
    select(resource_classes.c.id)
    .where(resource_classes.c.name == bindparam("name"))
    .with_for_update()
)
_INSERT_CLASSES, _INSERT_TRAITS = InsertRows(resource_classes), InsertRows(traits)
_DELETE_CLASS, _DELETE_TRAIT = (
    Statement(delete(table).where(table.c.id == bindparam("id")))
    for table in (resource_classes, traits)
)
_RENAME_CLASS = Statement(
    update(resource_classes)
    .where(resource_classes.c.id == bindparam("id"))
    .values(name=bindparam("new_name"), updated_at=bindparam("now"))
)


def resource_class_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Name -> internal id, for the classes that exist."""
    return {row.name: row.id for row in _CLASS_IDS.rows(connection, names)}


def hold_resource_classes(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Like `resource_class_ids`; no class can be deleted before the transaction ends.

    No foreign key protects the class of an inventory, so a writer of inventories holds the classes.
    """
    (rows,) = transaction.lock(_HOLD_CLASSES.bound_chunks(transaction, names))
    return {name: id_ for id_, name in rows}


def list_resource_classes(connection: Connection) -> list[Name]:
    """All resource classes, by id."""
    return [Name(*row) for row in connection.execute(_CLASSES)]


def find_resource_class(connection: Connection, name: str) -> Name | None:
    """The resource class of this name."""
    return _exact(connection.execute(_CLASS, {"name": name}).one_or_none(), name)


def lock_resource_class(transaction: Transaction, name: str) -> Name | None:
    """The class of this name; no inventory can begin to use it until the transaction ends."""
    (locked,) = transaction.lock([_LOCK_CLASS.bound(transaction, {"name": name})])
    return find_resource_class(transaction.connection, name) if locked else None


def resource_class_is_used(connection: Connection, resource_class: Name) -> bool:
    """Whether any inventory has this class. An allocation needs an inventory of its class."""
    query = select(inventories.c.id).where(inventories.c.resource_class_id == resource_class.id)
    return connection.execute(query.limit(1)).first() is not None


def insert_resource_classes(transaction: Transaction, names: Iterable[str]) -> None:
    """Insert custom classes with the next ids. The lock makes writers take turns."""
    lock_resource_class(transaction, os_resource_classes.VCPU)
    newest = transaction.connection.execute(select(func.max(resource_classes.c.id))).scalar()
    first = max(FIRST_CUSTOM_CLASS_ID, (newest or 0) + 1)
    rows = [
        {"created_at": transaction.now, "id": id_, "name": name}
        for id_, name in enumerate(names, first)
    ]
    transaction.write(_INSERT_CLASSES.bound(transaction, rows))
    record_vocabulary_change(transaction, ChangeKind.RESOURCE_CLASSES)


def rename_resource_class(transaction: Transaction, resource_class: Name, name: str) -> None:
    """Rename a custom class. Inventories and allocations refer to its id, which stays."""
    values = {"id": resource_class.id, "new_name": name, "now": transaction.now}
    transaction.write([_RENAME_CLASS.bound(transaction, values)])
    record_vocabulary_change(transaction, ChangeKind.RESOURCE_CLASSES)


def delete_resource_class(transaction: Transaction, resource_class: Name) -> None:
    """Delete a locked class that no inventory has."""
    transaction.write([_DELETE_CLASS.bound(transaction, {"id": resource_class.id})])
    record_vocabulary_change(transaction, ChangeKind.RESOURCE_CLASSES)


def trait_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Name -> internal id, for the traits that exist."""
    return {row.name: row.id for row in _TRAIT_IDS.rows(connection, names)}


def list_traits(connection: Connection, associated: bool | None) -> list[Name]:
    """All traits, or only those that some provider has, or that no provider has."""
    query = _TRAITS
    if associated is not None:
        on_provider = exists().where(resource_provider_traits.c.trait_id == traits.c.id)
        query = query.where(on_provider if associated else ~on_provider)
    return [Name(*row) for row in connection.execute(query)]


def find_trait(connection: Connection, name: str) -> Name | None:
    """The trait of this name."""
    return _exact(connection.execute(_TRAIT, {"name": name}).one_or_none(), name)


def _exact(row: Any, name: str) -> Name | None:
    """The row, unless its name has another case: MySQL ignores case when it compares."""
    return None if row is None or row.name != name else Name(*row)


def insert_traits(transaction: Transaction, names: Iterable[str]) -> None:
    """Insert custom traits; `IntegrityError` if one exists."""
    rows = [{"created_at": transaction.now, "name": name} for name in names]
    transaction.write(_INSERT_TRAITS.bound(transaction, rows))
    record_vocabulary_change(transaction, ChangeKind.TRAIT_NAMES)


def delete_trait(transaction: Transaction, trait: Name) -> None:
    """Delete a trait; `IntegrityError` if a provider has it."""
    transaction.write([_DELETE_TRAIT.bound(transaction, {"id": trait.id})])
    record_vocabulary_change(transaction, ChangeKind.TRAIT_NAMES)


def trait_is_used(connection: Connection, trait: Name) -> bool:
    """Whether any provider has the trait."""
    query = select(resource_provider_traits.c.trait_id).where(
        resource_provider_traits.c.trait_id == trait.id
    )
    return connection.execute(query.limit(1)).first() is not None


def sync_standard_names(transaction: Transaction) -> Finished[int]:
    """Insert every standard class and trait that is missing; how many were missing.

    It runs at each start, so that an upgrade of os-resource-classes or os-traits brings its new
    names. It never deletes a name.
    """
    known_classes, known_traits = (
        set(transaction.connection.execute(select(table.c.name)).scalars())
        for table in (resource_classes, traits)
    )
    new_classes = [
        {"created_at": transaction.now, "id": id_, "name": name}
        for id_, name in enumerate(os_resource_classes.STANDARDS)
        if name not in known_classes
    ]
    new_traits = [
        {"created_at": transaction.now, "name": name}
        for name in sorted(os_traits.get_traits())
        if name not in known_traits and not is_custom(name)
    ]
    if new_classes:
        transaction.write(_INSERT_CLASSES.bound(transaction, new_classes))
        record_vocabulary_change(transaction, ChangeKind.RESOURCE_CLASSES)
    if new_traits:
        transaction.write(_INSERT_TRAITS.bound(transaction, new_traits))
        record_vocabulary_change(transaction, ChangeKind.TRAIT_NAMES)
    return transaction.finish(len(new_classes) + len(new_traits))
