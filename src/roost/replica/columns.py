"""Columns out of a database: many rows, with little work for each of them."""

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

from roost.replica.queries import Query, joined
from roost.search.rows import IntColumn
from roost.store.errors import DatabaseUnusable
from roost.store.statements import Statement

# Python looks for garbage when there are 700 more objects: a chunk of rows is gone before that.
_CHUNK_LENGTH = 250
# How many providers share a pack. It must be shorter than `max_allowed_packet`, which is 16 MiB
# unless somebody changed it: that leaves 64 KiB for each provider.
_PACK_LENGTH = 256
# MySQL cuts off what it joins after 1,024 characters unless told otherwise.
_JOINED_LENGTH_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class Source:
    """A query for whole numbers, the first of which is a provider's id, and one last column.

    `query` gets the places of the members of the reader's lists, by name. The last column comes
    as it is from one database and as text from another: `convert` makes the same of both.
    """

    query: Callable[..., Query]
    convert: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """What a source gave: an array for each column of numbers, and the last column as a list."""

    numbers: IntColumn
    last: list[Any]


class Reader:
    """Reads some sources: with a statement for each from SQLite, all by one from a server.

    SQLite gives rows that cost about a microsecond each. From a server they would cost up to ten,
    so it joins what belongs to many providers into one text, a pack.
    """

    def __init__(self, *sources: Source, lists: Sequence[str] = ()) -> None:
        self._sources = sources
        self._rows = [Statement(source.query, lists=lists) for source in sources]
        self._packs = Statement(self._all_packed, lists=lists)
        nothing: dict[str, list[Any]] = {name: [] for name in lists}
        self._widths = [len(source.query(**nothing).selected_columns) - 1 for source in sources]

    def read(self, connection: Connection, values: Mapping[str, Any]) -> list[Columns]:
        """The columns of each source, their rows in any order; no list may be empty."""
        gathered = self._gathered()
        if connection.dialect.name == "sqlite":
            for into, statement in zip(gathered, self._rows, strict=True):
                _gather_rows(into, statement.run(connection, values))
        else:
            _allow_long_texts(connection)
            _gather_packs(gathered, self._packs.run(connection, values))
        return [into.columns() for into in gathered]

    def nothing(self) -> list[Columns]:
        """The columns of each source, without any row."""
        return [into.columns() for into in self._gathered()]

    def _gathered(self) -> list[_Gathered]:
        return [
            _Gathered(source.convert, width)
            for source, width in zip(self._sources, self._widths, strict=True)
        ]

    def _all_packed(self, **places: Any) -> ClauseElement:
        packed = [
            _packed(number, source.query(**places)) for number, source in enumerate(self._sources)
        ]
        return union_all(*packed) if len(packed) > 1 else packed[0]


class _Gathered:
    """The columns of one source while they come in."""

    def __init__(self, convert: Callable[[Any], Any], width: int) -> None:
        self.width = width
        self._convert = convert
        self._numbers: list[IntColumn] = []
        self._last: list[Any] = []

    def add(self, numbers: IntColumn, last: Iterable[Any]) -> None:
        self._numbers.append(numbers)
        self._last += map(self._convert, last)

    def columns(self) -> Columns:
        numbers = self._numbers or [np.empty((self.width, 0), dtype=np.int64)]
        return Columns(np.concatenate(numbers, axis=1), self._last)


def _gather_rows(into: _Gathered, result: Any) -> None:
    # The driver's own rows: SQLAlchemy would make objects of them.
    cursor = result.cursor
    while rows := cursor.fetchmany(_CHUNK_LENGTH):
        *columns, last = zip(*rows, strict=True)
        numbers = np.fromiter(chain.from_iterable(columns), np.int64, into.width * len(rows))
        into.add(numbers.reshape(into.width, len(rows)), last)
        if len(rows) < _CHUNK_LENGTH:
            break
    result.close()


def _gather_packs(gathered: Sequence[_Gathered], result: Any) -> None:
    for number, count, joined_numbers, joined_last in result.cursor:
        into = gathered[number]
        numbers = np.fromstring(joined_numbers, dtype=np.int64, sep=",")
        last = joined_last.split(";")
        if len(numbers) != count * into.width or len(last) != count:
            raise DatabaseUnusable(
                "The database server cut off a long answer. Give it a larger max_allowed_packet."
            )
        into.add(numbers.reshape(count, into.width).T, last)
    result.close()


def _packed(number: int, query: Query) -> Query:
    """The query with the rows of many providers in one: how many, their numbers, their last."""
    *numbers, last = query.subquery().c
    columns: list[Any] = [
        literal_column(str(number)),
        func.count(),
        joined(func.concat_ws(literal_column("','"), *numbers), ","),
        joined(cast(last, String), ";"),
    ]
    pack_number = numbers[0] // literal_column(str(_PACK_LENGTH), Integer)
    packs: Query = select(*columns).group_by(pack_number)
    return packs


def _allow_long_texts(connection: Connection) -> None:
    """Let MySQL join texts of any length; once for each connection to the server."""
    if connection.dialect.name == "postgresql" or "joins_long_texts" in connection.info:
        return
    connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {_JOINED_LENGTH_MAX}")
    connection.info["joins_long_texts"] = True
