"""Ownership: which owner has put which parts of providers there, a row for each pair of both.

A row counts as long as its provider has the id and the uuid of the row. Services that do not know
the table delete providers without it, and SQLite gives ids out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select, update

from roost.model.trees.owned import OwnedParts
from roost.store.statements import BoundStatement, InsertRows, Query, Statement
from roost.store.tables import resource_providers, roost_ownership
from roost.store.transaction import Transaction

_columns = roost_ownership.c
_OF_PROVIDERS = Query.among(
    _columns.provider_id,
    select(
        _columns.id,
        _columns.owner,
        _columns.provider_id,
        _columns.provider_uuid,
        _columns.content,
    ).order_by(_columns.owner),
)
# Python compares the uuids: on MySQL, an adopted table may have another collation than ours.
_WITH_UUIDS = Query.among(
    _columns.provider_id,
    select(
        _columns.provider_id,
        _columns.provider_uuid,
        resource_providers.c.uuid,
        _columns.owner,
        _columns.content,
    )
    .join_from(roost_ownership, resource_providers, resource_providers.c.id == _columns.provider_id)
    .order_by(_columns.owner),
)
_INSERT = InsertRows(roost_ownership)
_DELETE = Statement.among(_columns.id, delete(roost_ownership))
_DELETE_OF_PROVIDERS = Statement.among(_columns.provider_id, delete(roost_ownership))
_SET_UUID = Statement(
    update(roost_ownership)
    .where(
        _columns.provider_id == bindparam("of_provider"), _columns.provider_uuid == bindparam("old")
    )
    .values(provider_uuid=bindparam("new"))
)


class OwnershipRow(NamedTuple):
    """A row, with its parts as a text."""

    id: int
    owner: str
    provider_id: int
    provider_uuid: str
    content: str


class NewOwnership(NamedTuple):
    """What an owner owns of a provider from now on."""

    owner: str
    provider_id: int
    provider_uuid: str
    parts: OwnedParts


def ownership_queries(transaction: Transaction, ids: Iterable[int]) -> list[BoundStatement]:
    """The queries for all rows of these providers, those that no longer count included."""
    return _OF_PROVIDERS.bound_chunks(transaction, ids)


def owners_of(connection: Connection, ids: Iterable[int]) -> dict[int, dict[str, OwnedParts]]:
    """What owners own of the providers with these ids, by id and owner."""
    found: dict[int, dict[str, OwnedParts]] = {}
    for provider_id, recorded, uuid, owner, content in _WITH_UUIDS.fetch_members(connection, ids):
        if recorded == uuid:
            found.setdefault(provider_id, {})[owner] = OwnedParts.parse(content)
    return found


def change_ownership(
    transaction: Transaction,
    *,
    outdated: Iterable[int],
    emptied: Iterable[int],
    rows: Iterable[NewOwnership],
) -> None:
    """Replace the outdated rows, and all rows of the emptied providers, with new ones.

    Both are given by their ids. A new provider may have the id of one that another service has
    deleted, with rows of that one.
    """
    new = [
        {
            "created_at": transaction.now,
            "owner": row.owner,
            "provider_id": row.provider_id,
            "provider_uuid": row.provider_uuid,
            "content": row.parts.to_text(),
        }
        for row in rows
    ]
    transaction.write(
        [
            *_DELETE.bound_chunks(transaction, sorted(outdated)),
            *_DELETE_OF_PROVIDERS.bound_chunks(transaction, sorted(emptied)),
            *_INSERT.bound(transaction, new),
        ]
    )


def replace_owners(
    transaction: Transaction, provider_id: int, uuid: str, owners: Mapping[str, OwnedParts]
) -> None:
    """Let a locked provider have exactly these owners."""
    rows = [NewOwnership(owner, provider_id, uuid, parts) for owner, parts in owners.items()]
    change_ownership(transaction, outdated=(), emptied=[provider_id], rows=rows)


def follow_uuid(transaction: Transaction, provider_id: int, old: str, new: str) -> None:
    """Let the rows of a provider follow its new uuid."""
    values = {"of_provider": provider_id, "old": old, "new": new}
    transaction.write([_SET_UUID.bound(transaction, values)])
