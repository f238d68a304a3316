"""Lists of providers: the rows of all of them, of those with an identity, or with certain ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, literal_column, select

from roost.model.providers import Provider
from roost.store.rows.providers import PROVIDERS, provider_of
from roost.store.statements import Query
from roost.store.tables import resource_providers, stored_time

# What a row must be: values of `name`, `uuid` and `in_tree`, as far as a list asks for them.
IdentityConditions: TypeAlias = Mapping[str, str]

_columns = resource_providers.c
_member = resource_providers.alias("member")
_CONDITIONS: dict[str, ColumnElement[bool]] = {
    "name": _columns.name == bindparam("name"),
    "uuid": _columns.uuid == bindparam("uuid"),
    "in_tree": _columns.root_provider_id
    == select(_member.c.root_provider_id)
    .where(_member.c.uuid == bindparam("in_tree"))
    .scalar_subquery(),
}
_IN_RANGE = (_columns.id > bindparam("after_id"), _columns.id <= bindparam("up_to_id"))
_MODIFIED_AT = func.max(func.coalesce(_columns.updated_at, _columns.created_at))

_BY_IDS = Query.among(_columns.id, PROVIDERS.order_by(_columns.id))
_NEWEST = Query.among(
    _columns.id, select(_MODIFIED_AT).where(_columns.root_provider_id.is_not(None))
)


class Extent(NamedTuple):
    """The first and the last id of a list, and when a provider in it was last modified."""

    first_id: int
    last_id: int
    modified_at: datetime | None


def find_first(
    connection: Connection, identity: IdentityConditions, at_most: int
) -> list[Provider]:
    """The first providers with this identity, by id."""
    rows = _first(tuple(identity)).fetch(connection, {**identity, "at_most": at_most})
    return [*map(provider_of, rows)]


def find_in_range(
    connection: Connection, identity: IdentityConditions, after_id: int, up_to_id: int
) -> list[Provider]:
    """The providers with this identity whose ids lie in a range, by id."""
    values = {**identity, "after_id": after_id, "up_to_id": up_to_id}
    return [*map(provider_of, _in_range(tuple(identity)).fetch(connection, values))]


def find_by_ids(connection: Connection, ids: Sequence[int]) -> list[Provider]:
    """Those of the providers with these ids that still exist; in the order of sorted ids."""
    return [*map(provider_of, _BY_IDS.fetch_members(connection, ids))]


def find_ids(connection: Connection, identity: IdentityConditions) -> list[int]:
    """The ids of the providers with this identity, sorted."""
    return [id_ for (id_,) in _ids(tuple(identity)).fetch(connection, identity)]


def find_extent(connection: Connection, identity: IdentityConditions) -> Extent:
    """The extent of the list of all providers with this identity."""
    ((first_id, last_id, modified_at),) = _extent(tuple(identity)).fetch(connection, identity)
    return Extent(first_id or 0, last_id or 0, stored_time(modified_at))


def find_newest(connection: Connection, ids: Sequence[int]) -> datetime | None:
    """When one of the providers with these ids was last modified."""
    # One row for each execution of the statement.
    found = (stored_time(time) for (time,) in _NEWEST.fetch_members(connection, ids))
    return max((time for time in found if time is not None), default=None)


# Each statement is made once for each set of keys: there are eight.


@lru_cache
def _first(keys: tuple[str, ...]) -> Query:
    query = _with_identity(PROVIDERS, keys).limit(bindparam("at_most"))
    # SQLAlchemy gives SQLite an offset in any case, as one more parameter unless it is written out.
    return Query(query.offset(literal_column("0")))


@lru_cache
def _in_range(keys: tuple[str, ...]) -> Query:
    return Query(_with_identity(PROVIDERS, keys).where(*_IN_RANGE))


@lru_cache
def _ids(keys: tuple[str, ...]) -> Query:
    return Query(_with_identity(select(_columns.id), keys))


@lru_cache
def _extent(keys: tuple[str, ...]) -> Query:
    columns = func.min(_columns.id), func.max(_columns.id), _MODIFIED_AT
    query = select(*columns).where(_columns.root_provider_id.is_not(None))
    return Query(query.where(*map(_CONDITIONS.__getitem__, keys)))


def _with_identity(query: Select[Any], keys: tuple[str, ...]) -> Select[Any]:
    return query.where(*map(_CONDITIONS.__getitem__, keys)).order_by(_columns.id)
