"""Reading trees from the tables: all trees, trees that changed, or only the usage of providers.

The results of several statements are consistent only in a transaction with one snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import Connection

from roost.model.identifiers import canonical_uuid, is_uuid
from roost.search.forest.rows import (
    AllocationRows,
    BoolColumn,
    ForestRows,
    IntColumn,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
)
from roost.search.forest.vocabulary import Vocabulary
from roost.store.forest import queries
from roost.store.forest.columns import ColumnReader, Columns, ColumnSource
from roost.store.rows.vocabulary import list_resource_classes, list_traits
from roost.store.statements import Statement

# How many ids one statement may have. Compiling the first statement of a length takes 60
# microseconds for each id.
IDS_MAX = 1024
# How many providers a piece of a forest has. A database needs about a quarter of a second for it.
PIECE_PROVIDERS = 16_384
# To read so many takes a few milliseconds, in which other threads wait for the interpreter.
_ALLOCATIONS_AT_ONCE = 4096
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
    (queries.select_providers, queries.split_name),
    (queries.select_inventories, float),
    (queries.select_usages, int),
    (queries.select_traits, _shared),
    (queries.select_aggregates, _canonical),
)
_LISTS = ("provider_ids",)
_PROVIDERS = ColumnReader(ColumnSource(*_PARTS[0]))
# What providers have, piece by piece.
_PIECES = [
    ColumnReader(ColumnSource(queries.in_range(query), convert)) for query, convert in _PARTS[1:]
]
_TREES = ColumnReader(
    *(ColumnSource(queries.of_trees(query), convert) for query, convert in _PARTS), lists=_LISTS
)
_ALLOCATIONS = ColumnReader(ColumnSource(queries.select_allocations, str))
_USAGES = Statement(queries.select_usages, lists=_LISTS)
_ROOT_IDS = Statement(queries.select_root_ids, lists=_LISTS)


class ForestReading:
    """All trees, read piece by piece, so that a lost connection costs one piece.

    The pieces of one snapshot fit together. If there are several snapshots, the journal since the
    first one says which trees have to be read again. The shapes of all trees are one piece: they
    always fit together.
    """

    def __init__(self) -> None:
        self._providers: Columns | None = None
        self._pieces: list[list[Columns]] = [reader.empty() for reader in _PIECES]
        # What is left to read: the number of a reader, and the parameters of its statement.
        self._left: deque[tuple[int, dict[str, int]]] = deque()
        self.pieces_read = 0

    @property
    def pieces(self) -> int:
        """How many pieces there are, as far as that is known."""
        return self.pieces_read + len(self._left)

    def read_on(self, connection: Connection, tell: Callable[[], None] = lambda: None) -> None:
        """Read all that is left, in the snapshot of this connection; `tell` after each piece."""
        if self._providers is None:
            (self._providers,) = _PROVIDERS.read(connection, {})
            self._left.extend(_pieces_of(self._providers.integers[0]))
            self.pieces_read += 1
            tell()
        while self._left:
            number, values = self._left[0]
            self._pieces[number] += _PIECES[number].read(connection, values)
            self._left.popleft()
            self.pieces_read += 1
            tell()

    def take_rows(self) -> ForestRows:
        """What was read, after the last piece.

        The reading gives each piece away, because the memory of both forms at once is the most that
        a process ever needs.
        """
        providers, self._providers = self._providers, None
        assert providers is not None, "the shapes of the trees were read"
        ids = providers.integers[0]
        known = np.zeros(ids.max(initial=0) + 1, dtype=bool)
        known[ids] = True
        parts = [providers]
        while self._pieces:
            parts.append(_of_known(_joined(*self._pieces.pop(0)), known))
        return _forest_rows(parts)


def read_forest(connection: Connection) -> ForestRows:
    """All trees."""
    reading = ForestReading()
    reading.read_on(connection)
    return reading.take_rows()


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


def read_allocations(connection: Connection, pause: Callable[[], None]) -> AllocationRows:
    """All allocations of all consumers, page by page, with a pause after each page."""
    numbers: dict[str, int] = {}
    pages: list[IntColumn] = []
    after, length = 0, _ALLOCATIONS_AT_ONCE
    while length == _ALLOCATIONS_AT_ONCE:
        values = {"after": after, "length": _ALLOCATIONS_AT_ONCE}
        (columns,) = _ALLOCATIONS.read(connection, values)
        ids, *others = columns.integers
        length, after = len(ids), ids.max(initial=after).item()
        consumers = [numbers.setdefault(uuid, len(numbers)) for uuid in columns.last]
        pages.append(np.array([*others, consumers], np.int64))
        pause()
    provider_ids, amounts, numbered = np.concatenate(pages, axis=1)
    class_ids, used = queries.split_pairs(amounts)
    return AllocationRows(provider_ids, class_ids, used, numbered)


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


def _pieces_of(provider_ids: IntColumn) -> Iterator[tuple[int, dict[str, int]]]:
    """The pieces of what these providers have: the number of a reader, and its parameters."""
    ids = np.sort(provider_ids)
    firsts = ids[::PIECE_PROVIDERS].tolist()
    lasts = np.append(ids[PIECE_PROVIDERS - 1 :: PIECE_PROVIDERS], ids[-1:])[: len(firsts)].tolist()
    for number in range(len(_PIECES)):
        for first, last in zip(firsts, lasts, strict=True):
            yield number, {"first": first, "last": last}


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
    uuids = [uuid for uuid, _ in columns.last]
    names = [name for _, name in columns.last]
    return ProviderRows(ids, uuids, names, parent_ids, root_ids)


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
