"""Statements on the way of every claim, compiled once.

SQLAlchemy looks a statement up, binds and post-processes it anew at each execution. That costs
60 to 150 microseconds a statement, most of what a claim costs in all; here it is about 25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Connection, Table, bindparam, insert
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement

Values = Mapping[str, Any]

# Only a client that tries gets a statement to more.
_TEXTS_MAX = 256


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The text for one database, the order of its parameters, and how they are converted."""

    text: str
    order: tuple[str, ...] | None
    converters: tuple[tuple[str, Callable[[Any], Any]], ...]

    def parameters(self, values: Values) -> Any:
        bound = dict(values)
        for name, convert in self.converters:
            bound[name] = convert(bound[name])
        return bound if self.order is None else tuple(bound[name] for name in self.order)


class Statement:
    """A statement whose results are plain numbers and text.

    Parameters that are lists (`IN`) have another text for each length: for those, `construct` is
    a function that takes the members' places, by the names of the lists.
    """

    def __init__(
        self, construct: ClauseElement | Callable[..., ClauseElement], *, lists: Sequence[str] = ()
    ) -> None:
        self._construct = construct
        self._lists = tuple(lists)
        self._compiled: dict[tuple[Any, ...], _Compiled] = {}

    def run(self, connection: Connection, values: Values) -> Any:
        """The result of executing it once; the lists may have any length, also none."""
        lengths = tuple(_rounded(len(values[name])) for name in self._lists)
        compiled = self._for(connection, lengths)
        if self._lists:
            values = _spread(values, self._lists, lengths)
        return connection.exec_driver_sql(compiled.text, compiled.parameters(values))

    def _for(self, connection: Connection, lengths: tuple[int, ...]) -> _Compiled:
        key = connection.dialect.name, connection.dialect.driver, lengths
        found = self._compiled.get(key)
        if found is None:
            if len(self._compiled) >= _TEXTS_MAX:
                self._compiled.clear()
            found = self._compiled[key] = self._compile(connection, lengths)
        return found

    def _compile(self, connection: Connection, lengths: tuple[int, ...]) -> _Compiled:
        dialect = connection.dialect
        places: dict[str, list[BindParameter[Any]]] = {
            name: [bindparam(_place(name, index)) for index in range(length)]
            for name, length in zip(self._lists, lengths, strict=True)
        }
        construct = self._construct(**places) if callable(self._construct) else self._construct
        compiled = construct.compile(
            dialect=dialect,
        )
        assert isinstance(compiled, SQLCompiler)
        converters = (
            (name, bind.type.dialect_impl(dialect).bind_processor(dialect))
            for name, bind in compiled.binds.items()
        )
        return _Compiled(
            text=str(compiled),
            order=tuple(compiled.positiontup) if compiled.positiontup is not None else None,
            converters=tuple((name, convert) for name, convert in converters if convert),
        )


class InsertRows:
    """Inserts rows into a table: a few by one statement, many by the driver's own means.

    psycopg spends a third of a millisecond on three rows given one by one.
    """

    # Each number of rows has a text of its own, so it must not become too many.
    _TOGETHER_MAX = 16

    def __init__(self, table: Table) -> None:
        self._table = table
        self._together: dict[tuple[int, tuple[str, ...]], Statement] = {}

    def run(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert the rows, which all have the same columns."""
        if not rows:
            return
        if len(rows) > self._TOGETHER_MAX:
            connection.execute(insert(self._table), [dict(row) for row in rows])
            return
        names = tuple(rows[0])
        statement = self._together.get((len(rows), names))
        if statement is None:
            statement = Statement(self._several(len(rows), names))
            self._together[len(rows), names] = statement
        statement.run(
            connection,
            {
                _place(name, index): value
                for index, row in enumerate(rows)
                for name, value in row.items()
            },
        )

    def _several(self, length: int, names: Sequence[str]) -> ClauseElement:
        columns = self._table.c
        return insert(self._table).values(
            [
                {name: bindparam(_place(name, index), type_=columns[name].type) for name in names}
                for index in range(length)
            ]
        )


def _place(name: str, index: int) -> str:
    return f"{name}_{index}"


def _rounded(length: int) -> int:
    """How many places a list gets: few different numbers, so that there are few texts.

    >>> [_rounded(length) for length in (0, 1, 3, 9)]
    [0, 1, 4, 16]
    """
    return 0 if length == 0 else 1 << (length - 1).bit_length()


def _spread(values: Values, lists: tuple[str, ...], lengths: tuple[int, ...]) -> dict[str, Any]:
    """Give each member of a list the name of its place; the last fills the places left over."""
    spread = {name: value for name, value in values.items() if name not in lists}
    for name, length in zip(lists, lengths, strict=True):
        members = values[name]
        for index in range(length):
            spread[_place(name, index)] = members[min(index, len(members) - 1)]
    return spread
