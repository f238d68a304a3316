"""The queries for the parts of a forest, of all providers or of some.

Each takes `provider_ids`: a list or a query, as `IN` does, or a range. With `None`, it selects all
providers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)

from roost.search.forest.rows import NO_PARENT, IntColumn
from roost.store.dialect import JOINABLE
from roost.store.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

ForestQuery: TypeAlias = Select[Any]


# What stands in a text for a character of a name.
_ESCAPES = (("'~'", "'~0'"), ("';'", "'~1'"))


class IdRange(NamedTuple):
    """The ids from the first to the last: numbers, or the parameters for them."""

    first: Any
    last: Any


def select_providers(provider_ids: Any = None) -> ForestQuery:
    """Id, the pair of root's id and parent's id, uuid and name as `split_name` takes them."""
    columns = resource_providers.c
    parent_id = func.coalesce(columns.parent_provider_id, literal_column(str(NO_PARENT)))
    # A pack has a semicolon between two texts, so a name must have none.
    name: ColumnElement[Any] = func.coalesce(columns.name, literal_column("''"))
    for character, stands_for_it in _ESCAPES:
        name = func.replace(name, literal_column(character), literal_column(stands_for_it))
    query = select(
        columns.id,
        _pair(columns.root_provider_id, parent_id),
        columns.uuid.concat(literal_column("','")).concat(name),
    )
    # The reference shows a provider without a root in no answer.
    return _only(provider_ids, columns.id, query.where(columns.root_provider_id.is_not(None)))


def split_name(text: str) -> tuple[bytes, bytes]:
    """The uuid and the name of a provider.

    >>> split_name("c0ffee00-0000-0000-0000-000000000001,a~1b~01")
    (b'c0ffee00-0000-0000-0000-000000000001', b'a;b~1')
    """
    uuid, _, name = text.encode().partition(b",")
    if b"~" in name:
        name = name.replace(b"~1", b";").replace(b"~0", b"~")
    return uuid, name


def select_inventories(provider_ids: Any = None) -> ForestQuery:
    """Provider's id, three pairs, ratio.

    The pairs are class's id and step size, total and reserved, smallest and largest unit.
    """
    columns = inventories.c
    query = select(
        columns.resource_provider_id,
        _pair(columns.resource_class_id, columns.step_size),
        _pair(columns.total, columns.reserved),
        _pair(columns.min_unit, columns.max_unit),
        columns.allocation_ratio,
    )
    return _only(provider_ids, columns.resource_provider_id, query)


def select_usages(provider_ids: Any = None) -> ForestQuery:
    """Provider's id, class's id, and the sum of the allocations of all consumers."""
    columns = allocations.c
    query = select(
        columns.resource_provider_id,
        columns.resource_class_id,
        func.sum(columns.used).label("used"),
    ).group_by(columns.resource_provider_id, columns.resource_class_id)
    return _only(provider_ids, columns.resource_provider_id, query)


def select_allocations() -> ForestQuery:
    """Id, provider's id, the pair of class's id and amount, consumer's uuid.

    It selects the first `length` allocations whose ids are higher than `after`: two parameters.
    """
    columns = allocations.c
    return (
        select(
            columns.id,
            columns.resource_provider_id,
            _pair(columns.resource_class_id, columns.used),
            columns.consumer_id,
        )
        .where(columns.id > bindparam("after"))
        .order_by(columns.id)
        .limit(bindparam("length", type_=Integer()))
        # SQLite's form of a limit has an offset, which would be a parameter.
        .offset(literal_column("0", Integer))
    )


def select_traits(provider_ids: Any = None) -> ForestQuery:
    """Provider's id, and the ids of its traits, separated by commas."""
    columns = resource_provider_traits.c
    query = _members(columns.resource_provider_id, cast(columns.trait_id, JOINABLE))
    return _only(provider_ids, columns.resource_provider_id, query)


def select_aggregates(provider_ids: Any = None) -> ForestQuery:
    """Provider's id, and the uuids of its aggregates, separated by commas."""
    association, aggregates = resource_provider_aggregates, placement_aggregates
    query = _members(association.c.resource_provider_id, aggregates.c.uuid).join_from(
        association, aggregates, aggregates.c.id == association.c.aggregate_id
    )
    return _only(provider_ids, association.c.resource_provider_id, query)


def of_trees(query: Callable[[Any], ForestQuery]) -> Callable[..., ForestQuery]:
    """The same query for the whole trees of the providers that have these ids."""
    named = resource_providers.alias("named")

    def select_in_trees(provider_ids: Sequence[Any]) -> ForestQuery:
        root_ids = select(named.c.root_provider_id).where(named.c.id.in_(provider_ids))
        columns = resource_providers.c
        return query(select(columns.id).where(columns.root_provider_id.in_(root_ids)))

    return select_in_trees


def in_range(query: Callable[[Any], ForestQuery]) -> Callable[[], ForestQuery]:
    """The same query for the providers from the parameter `first` to the parameter `last`."""
    return lambda: query(IdRange(bindparam("first"), bindparam("last")))


def select_root_ids(provider_ids: Any) -> ForestQuery:
    """The ids of the roots of these providers."""
    columns = resource_providers.c
    query = select(columns.root_provider_id).distinct()
    return _only(provider_ids, columns.id, query.where(columns.root_provider_id.is_not(None)))


def joined(texts: ColumnElement[Any], separator: str) -> ColumnElement[str]:
    """The texts of a group as one text, in any order."""
    # A literal needs no parameter.
    literal: Any = literal_column(f"'{separator}'")
    return func.aggregate_strings(texts, literal)


def split_pairs(pairs: IntColumn) -> tuple[IntColumn, IntColumn]:
    """The first and the second members of the pairs in a column.

    >>> import numpy as np
    >>> split_pairs(np.array([(7 << 32) + 5, (7 << 32) - 1]))
    (array([7, 7]), array([ 5, -1]))
    """
    firsts = (pairs + (1 << 31)) >> 32
    return firsts, pairs - (firsts << 32)


def _pair(first: ColumnElement[int], second: ColumnElement[int]) -> ColumnElement[int]:
    """Two integers of 32 bits in one of 64: a column less saves a tenth of the reading time."""
    return first * literal_column(str(1 << 32), BigInteger) + second


def _members(provider_id: ColumnElement[int], member: ColumnElement[Any]) -> ForestQuery:
    columns: list[Any] = [provider_id, joined(member, ",").label("members")]
    query: ForestQuery = select(*columns).group_by(provider_id)
    return query


def _only(provider_ids: Any, provider_id: ColumnElement[int], query: ForestQuery) -> ForestQuery:
    if provider_ids is None:
        return query
    if isinstance(provider_ids, IdRange):
        return query.where(provider_id.between(provider_ids.first, provider_ids.last))
    return query.where(provider_id.in_(provider_ids))
