"""Reading trees from the tables: all trees, trees that changed, or only the usage of providers.

The results of several statements are consistent only in a transaction with one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import Connection

from roost.model.identifiers import canonical_uuid, is_uuid
from roost.search.columns import BoolColumn
from roost.search.rows import (
    AllocationRows,
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
)
from roost.search.vocabulary import Vocabulary
from roost.store.forest import queries
from roost.store.forest.columns import ColumnReader, Columns, ColumnSource
from roost.store.statements import Statement
from roost.store.vocabulary import list_resource_classes, list_traits

# How many ids one statement may have. Compiling the first statement of a length takes 60
# microseconds for each id.
IDS_MAX = 1024
# Many providers have equal sets of traits, or of aggregates: these share one text.
_SHARED_MAX = 4096


@lru_cache(_SHARED_MAX)
def _shared(members: str) -> str:
    return members


@lru_cache(_SHARED_MAX)
def _canonical(members: str) -> str:
    """The uuids in canonical form: the reference may have stored them as clients wrote them."""
    uuids = members.split(",")
    return ",".join(canonical_uuid(uuid) if is_uuid(uuid) else uuid for uuid in uuids)


# The parts of a forest: the query, and the conversion of its last column.
_PARTS: tuple[tuple[Callable[..., queries.ForestQuery], Callable[[Any], Any]], ...] = (
    (queries.select_providers, str.encode),
    (queries.select_inventories, float),
    (queries.select_usages, int),
    (queries.select_traits, _shared),
    (queries.select_aggregates, _canonical),
)
_LISTS = ("provider_ids",)
_FOREST = [ColumnReader(ColumnSource(query, convert)) for query, convert in _PARTS]
_TREES = ColumnReader(
    *(ColumnSource(queries.of_trees(query), convert) for query, convert in _PARTS), lists=_LISTS
)
_ALLOCATIONS = ColumnReader(ColumnSource(queries.select_allocations, str))
_USAGES = Statement(queries.select_usages, lists=_LISTS)
_ROOT_IDS = Statement(queries.select_root_ids, lists=_LISTS)


def read_forest(connection: Connection) -> ForestRows:
    """All trees, by one statement for each table."""
    providers, *others = (part for reader in _FOREST for part in reader.read(connection, {}))
    ids = providers.integers[0]
    known = np.zeros(ids.max(initial=0) + 1, dtype=bool)
    known[ids] = True
    return _forest_rows([providers, *(_of_known(part, known) for part in others)])


def read_trees(
    connection: Connection, provider_ids: Collection[int], old_root_ids: Collection[int]
) -> ForestRows:
    """The whole trees, as they are now, of these providers and of their old roots.

    A provider may have moved from one tree to another, or have been deleted.
    """
    ids = {*provider_ids, *old_root_ids}
    if len(ids) > IDS_MAX:
        # Two statements with providers of the same tree would both find that tree.
        ids = _root_ids(connection, ids)
    pieces = [_TREES.read(connection, values) for values in _values(ids)] or [_TREES.empty()]
    return _forest_rows([_joined(*part) for part in zip(*pieces, strict=True)])


def read_usages(connection: Connection, provider_ids: Collection[int]) -> UsageRows:
    """The usage of these providers, which are distinct."""
    # A reader runs it after each claim: packing the few rows of a claim would take longer.
    rows: list[Any] = []
    for values in _values(provider_ids):
        result = _USAGES.run(connection, values)
        rows += result.cursor.fetchall()
        result.close()
    integers = np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows)).reshape(-1, 3)
    return UsageRows(*integers.T)


def read_allocations(connection: Connection) -> AllocationRows:
    """All allocations of all consumers, by one statement."""
    (columns,) = _ALLOCATIONS.read(connection, {})
    provider_ids, amounts = columns.integers
    class_ids, used = queries.split_pairs(amounts)
    return AllocationRows(provider_ids, class_ids, used, columns.last)


def read_vocabulary(connection: Connection) -> Vocabulary:
    """The names of all resource classes and traits."""
    return Vocabulary.of(
        {name.name: name.id for name in list_resource_classes(connection)},
        {name.name: name.id for name in list_traits(connection, associated=None)},
    )


def _root_ids(connection: Connection, provider_ids: Collection[int]) -> set[int]:
    return {
        root_id
        for values in _values(provider_ids)
        for (root_id,) in _ROOT_IDS.run(connection, values)
    }


def _joined(*pieces: Columns) -> Columns:
    if len(pieces) == 1:
        return pieces[0]
    return Columns(
        np.concatenate([columns.integers for columns in pieces], axis=1),
        [value for columns in pieces for value in columns.last],
    )


def _values(provider_ids: Collection[int]) -> list[dict[str, list[int]]]:
    """The parameters of the statements that together have these ids."""
    # In order, because rows with neighbouring ids are often on the same page.
    ids = sorted(provider_ids)
    return [{"provider_ids": ids[start : start + IDS_MAX]} for start in range(0, len(ids), IDS_MAX)]


def _of_known(columns: Columns, known: BoolColumn) -> Columns:
    """The rows of known providers only.

    The inventories of a deleted provider may remain, because no foreign key deletes them.
    """
    provider_ids = columns.integers[0]
    selected = provider_ids < len(known)
    selected[selected] = known[provider_ids[selected]]
    if selected.all():
        return columns
    last = [value for value, is_known in zip(columns.last, selected, strict=True) if is_known]
    return Columns(columns.integers[:, selected], last)


def _forest_rows(parts: Sequence[Columns]) -> ForestRows:
    providers, inventories, usages, traits, aggregates = parts
    return ForestRows(
        providers=_provider_rows(providers),
        inventories=_inventory_rows(inventories),
        usages=_usage_rows(usages),
        traits=MembershipRows(traits.integers[0], traits.last),
        aggregates=MembershipRows(aggregates.integers[0], aggregates.last),
    )


def _provider_rows(columns: Columns) -> ProviderRows:
    ids, roots_and_parents = columns.integers
    root_ids, parent_ids = queries.split_pairs(roots_and_parents)
    return ProviderRows(ids, columns.last, parent_ids, root_ids)


def _usage_rows(columns: Columns) -> UsageRows:
    provider_ids, class_ids = columns.integers
    used = np.fromiter(columns.last, np.int64, len(columns.last))
    return UsageRows(provider_ids, class_ids, used)


def _inventory_rows(columns: Columns) -> InventoryRows:
    provider_ids, classes_and_steps, amounts, units = columns.integers
    class_ids, step_size = queries.split_pairs(classes_and_steps)
    total, reserved = queries.split_pairs(amounts)
    min_unit, max_unit = queries.split_pairs(units)
    return InventoryRows(
        provider_ids=provider_ids,
        class_ids=class_ids,
        total=total,
        reserved=reserved,
        min_unit=min_unit,
        max_unit=max_unit,
        step_size=step_size,
        allocation_ratio=np.fromiter(columns.last, np.float64, len(columns.last)),
    )
