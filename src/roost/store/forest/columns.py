"""Columns from a database: many rows, with little work for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import (
    Connection,
    Integer,
    String,
    cast,
    func,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.sql.expression import ClauseElement

from roost.search.forest.rows import IntColumn
from roost.store.connections.errors import DatabaseUnusable
from roost.store.dialect import dialect_of
from roost.store.forest.queries import ForestQuery, joined
from roost.store.statements import Statement

# Python's garbage collector starts after 700 new objects: a chunk of rows is freed before that.
_CHUNK_LENGTH = 250
# How many providers share a pack. A pack must be shorter than `max_allowed_packet`, whose default
# is 16 MiB: that leaves 64 KiB for each provider.
_PACK_LENGTH = 256


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A query whose columns are integers, the first a provider's id, and one last column.

    `query` gets the bind parameters of the reader's lists, by name. A file gives the last column as
    it is stored, and a server as text: `convert` turns both into the same value.
    """

    query: Callable[..., ForestQuery]
    convert: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """The result of a source: an array for each column of integers, and the last column."""

    integers: IntColumn
    last: list[Any]


class ColumnReader:
    """Reads several sources: from a file by a statement for each, from a server by one for all.

    A row costs about a microsecond with a file, and up to ten with a server. So a server joins the
    rows of many providers into one text, a pack.
    """

    def __init__(self, *sources: ColumnSource, lists: Sequence[str] = ()) -> None:
        self._sources = sources
        self._rows = [Statement(source.query, lists=lists) for source in sources]
        self._packs = Statement(self._all_packed, lists=lists)
        empty: dict[str, list[Any]] = {name: [] for name in lists}
        self._widths = [len(source.query(**empty).selected_columns) - 1 for source in sources]

    def read(self, connection: Connection, values: Mapping[str, Any]) -> list[Columns]:
        """The columns of each source, their rows in any order; no list may be empty."""
        gathered = self._gathered()
        dialect = dialect_of(connection)
        if not dialect.packs_rows:
            for into, statement in zip(gathered, self._rows, strict=True):
                _gather_rows(into, statement.run(connection, values))
        else:
            dialect.allow_long_texts(connection)
            _gather_packs(gathered, self._packs.run(connection, values))
        return [into.columns() for into in gathered]

    def empty(self) -> list[Columns]:
        """The columns of each source, without any row."""
        return [into.columns() for into in self._gathered()]

    def _gathered(self) -> list[_Gathered]:
        return [
            _Gathered(source.convert, width)
            for source, width in zip(self._sources, self._widths, strict=True)
        ]

    def _all_packed(self, **parameters: Any) -> ClauseElement:
        packed = [
            _packed(index, source.query(**parameters)) for index, source in enumerate(self._sources)
        ]
        return union_all(*packed) if len(packed) > 1 else packed[0]


class _Gathered:
    """The columns of one source while its rows arrive."""

    def __init__(self, convert: Callable[[Any], Any], width: int) -> None:
        self.width = width
        self._convert = convert
        self._integers: list[IntColumn] = []
        self._last: list[Any] = []

    def add(self, integers: IntColumn, last: Iterable[Any]) -> None:
        self._integers.append(integers)
        self._last += map(self._convert, last)

    def columns(self) -> Columns:
        integers = self._integers or [np.empty((self.width, 0), dtype=np.int64)]
        return Columns(np.concatenate(integers, axis=1), self._last)


def _gather_rows(into: _Gathered, result: Any) -> None:
    # The driver's own rows: SQLAlchemy would make an object of each.
    cursor = result.cursor
    while rows := cursor.fetchmany(_CHUNK_LENGTH):
        *columns, last = zip(*rows, strict=True)
        integers = np.fromiter(chain.from_iterable(columns), np.int64, into.width * len(rows))
        into.add(integers.reshape(into.width, len(rows)), last)
        if len(rows) < _CHUNK_LENGTH:
            break
    result.close()


def _gather_packs(gathered: Sequence[_Gathered], result: Any) -> None:
    for source_index, row_count, joined_integers, joined_last in result.cursor:
        into = gathered[source_index]
        integers = np.fromstring(joined_integers, dtype=np.int64, sep=",")
        last = joined_last.split(";")
        if len(integers) != row_count * into.width or len(last) != row_count:
            raise DatabaseUnusable(
                "The database server cut off a long answer. Give it a larger max_allowed_packet."
            )
        into.add(integers.reshape(row_count, into.width).T, last)
    result.close()


def _packed(source_index: int, query: ForestQuery) -> ForestQuery:
    """The query with the rows of many providers in one row.

    Its columns are the index of the source, the count of rows, their integers, their last column.
    """
    *integers, last = query.subquery().c
    columns: list[Any] = [
        literal_column(str(source_index)),
        func.count(),
        joined(func.concat_ws(literal_column("','"), *integers), ","),
        joined(cast(last, String), ";"),
    ]
    pack = integers[0] // literal_column(str(_PACK_LENGTH), Integer)
    packs: ForestQuery = select(*columns).group_by(pack)
    return packs
