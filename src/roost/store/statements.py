"""Statements that are compiled once, for what every claim executes.

SQLAlchemy looks up, binds and post-processes a statement at each execution. That takes 60 to 150
microseconds, the largest part of a claim. A statement of this module takes about 25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    Insert,
    Table,
    bindparam,
    case,
    delete,
    insert,
    type_coerce,
    update,
)
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.types import TypeEngine

from roost.store.connections.sessions import fetch_directly
from roost.store.dialect import dialect_named

T = TypeVar("T")

Values = Mapping[str, Any]
Parameter: TypeAlias = BindParameter[Any]

# MariaDB turns a list of a thousand members into a join, which locks rows that it does not name.
# SQLite takes 32,766 parameters in a statement, PostgreSQL 65,535.
CHUNK_LENGTH = 512
# A statement has one text for each combination of list lengths. Usual clients need far fewer; the
# bound is against a client that sends all combinations.
_TEXTS_MAX = 256
# How many times of day are remembered in the form of the driver.
_TIMES_MAX = 8


class HasSqlDialect(Protocol):
    """A transaction: the text of a statement depends on its SQL."""

    sql_dialect: Dialect


class BoundStatement(NamedTuple):
    """The text of a statement for one driver, with the values of its parameters."""

    text: str
    parameters: Any


def chunks(values: Iterable[T], length: int = CHUNK_LENGTH) -> list[Sequence[T]]:
    """The values in pieces that fit into one statement; no piece for no values.

    >>> [len(chunk) for chunk in chunks(range(513))]
    [512, 1]
    """
    everything = list(values)
    if len(everything) <= length:
        return [everything] if everything else []
    return [everything[start : start + length] for start in range(0, len(everything), length)]


def insert_row(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Insert one row; the id that the database gave it."""
    key = connection.execute(insert(table), values).inserted_primary_key
    assert key is not None, "every table has a key of its own"
    id_: int = key[0]
    return id_


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The text for one database, and how its parameters come from values by name."""

    text: str
    # For each parameter the name of its value; in a list also the index there, else -1.
    sources: tuple[tuple[str, int], ...]
    # Which parameters are converted, and how.
    converters: tuple[tuple[int, Callable[[Any], Any]], ...]

    def bound(self, parameters: list[Any]) -> BoundStatement:
        for position, convert in self.converters:
            parameters[position] = convert(parameters[position])
        return BoundStatement(self.text, tuple(parameters))


class Statement:
    """A statement whose result columns need no conversion: integers and text.

    A parameter that is a list (`IN`) needs another text for each length. So `construct` is then a
    function that takes the bind parameters of the members, by the names of the lists. The last
    member fills a list up to a power of two, so that texts are few.
    """

    def __init__(
        self,
        construct: ClauseElement | Callable[..., ClauseElement],
        *,
        lists: Sequence[str] = (),
    ) -> None:
        self._construct = construct
        self._lists = tuple(lists)
        self._compiled: dict[tuple[Any, ...], _Compiled] = {}

    @classmethod
    def among(cls, column: ColumnElement[Any], construct: Any) -> Self:
        """The statement for those rows whose column is a member of its one list."""
        return cls(lambda members: construct.where(column.in_(members)), lists=["members"])

    def run(self, connection: Connection, values: Values) -> Any:
        """Execute it once. A list may be empty only if `construct` handles an empty list."""
        return connection.exec_driver_sql(*self._bound(connection.dialect, values))

    def bound(self, transaction: HasSqlDialect, values: Values) -> BoundStatement:
        """The statement with these values."""
        return self._bound(transaction.sql_dialect, values)

    def _bound(self, dialect: Dialect, values: Values) -> BoundStatement:
        lengths: tuple[int, ...] = ()
        if self._lists:
            values = dict(values)
            for name in self._lists:
                members = values[name] = _filled(values[name])
                lengths += (len(members),)
        compiled = self._for(dialect, lengths)
        return compiled.bound(
            [values[name] if index < 0 else values[name][index] for name, index in compiled.sources]
        )

    def bound_rows(self, transaction: HasSqlDialect, rows: Sequence[Values]) -> BoundStatement:
        """The statement with the values of rows. Each row has a member of each list."""
        compiled = self._for(transaction.sql_dialect, (len(rows),) * len(self._lists))
        return compiled.bound([rows[index][name] for name, index in compiled.sources])

    def bound_chunks(
        self, transaction: HasSqlDialect, members: Iterable[Any], values: Values | None = None
    ) -> list[BoundStatement]:
        """The statements for the members of its first list, as many as necessary."""
        dialect = transaction.sql_dialect
        return [self._bound(dialect, chunk) for chunk in self._chunks(members, values)]

    def rows(
        self, connection: Connection, members: Iterable[Any], values: Values | None = None
    ) -> list[Any]:
        """All rows for the members of its first list, by as many executions as necessary."""
        chunked = self._chunks(members, values)
        return [row for chunk in chunked for row in self.run(connection, chunk)]

    def _chunks(self, members: Iterable[Any], values: Values | None = None) -> Iterator[Values]:
        name, others = self._lists[0], values or {}
        return ({name: chunk, **others} for chunk in chunks(members))

    def _for(self, dialect: Dialect, lengths: tuple[int, ...]) -> _Compiled:
        key = dialect.name, dialect.driver, lengths
        found = self._compiled.get(key)
        if found is None:
            if len(self._compiled) >= _TEXTS_MAX:
                self._compiled.clear()
            found = self._compiled[key] = self._compile(dialect, lengths)
        return found

    def _compile(self, dialect: Dialect, lengths: tuple[int, ...]) -> _Compiled:
        dialect = _with_positions(dialect)
        parameters: dict[str, list[Parameter]] = {
            name: [bindparam(_parameter_name(name, index)) for index in range(length)]
            for name, length in zip(self._lists, lengths, strict=True)
        }
        construct = self._construct(**parameters) if callable(self._construct) else self._construct
        compiled = construct.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        if compiled.post_compile_params:
            raise ValueError(
                "A condition on an empty list has no text. The caller leaves the statement out, or "
                "`construct` leaves the condition out."
            )
        order = compiled.positiontup
        assert order is not None, "every parameter has a position"
        members = {
            _parameter_name(name, index): (name, index)
            for name, length in zip(self._lists, lengths, strict=True)
            for index in range(length)
        }
        converters = (
            (position, _converter(compiled.binds[name].type, dialect))
            for position, name in enumerate(order)
        )
        return _Compiled(
            text=str(compiled),
            sources=tuple(members.get(name, (name, -1)) for name in order),
            converters=tuple((position, convert) for position, convert in converters if convert),
        )


@cache
def _with_positions(dialect: Dialect) -> Dialect:
    """The dialect with parameters by position: names would cost time at each execution."""
    if dialect.paramstyle != "pyformat":
        return dialect
    make: Callable[..., Dialect] = type(dialect)
    return make(paramstyle="format")


def _converter(type_: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    if isinstance(type_, DateTime):
        return _time_converter(dialect)
    return type_.dialect_impl(dialect).bind_processor(dialect)


@cache
def _time_converter(dialect: Dialect) -> Callable[[Any], Any] | None:
    """One for all statements, because all rows of a transaction have the same time."""
    convert = DateTime().dialect_impl(dialect).bind_processor(dialect)
    return None if convert is None else lru_cache(_TIMES_MAX)(convert)


class InsertRows:
    """Inserts rows into a table, several by one statement.

    psycopg takes a third of a millisecond for three rows one by one. With `unless_taken`, it skips
    a row if the table already has the row's value in that unique column.
    """

    # Each count of rows has its own text, so the count is bounded.
    _TOGETHER_MAX = 16

    def __init__(self, table: Table, *, unless_taken: Column[Any] | None = None) -> None:
        self._table = table
        self._unless_taken = unless_taken
        self._together: dict[tuple[str, tuple[str, ...]], Statement] = {}

    def bound(self, transaction: HasSqlDialect, rows: Sequence[Values]) -> list[BoundStatement]:
        """The statements that insert the rows, which all have the same columns."""
        return [self._bound(transaction, chunk) for chunk in chunks(rows, self._TOGETHER_MAX)]

    def _bound(self, transaction: HasSqlDialect, rows: Sequence[Values]) -> BoundStatement:
        dialect, names = transaction.sql_dialect.name, tuple(rows[0])
        statement = self._together.get((dialect, names))
        if statement is None:
            construct = partial(self._several, dialect)
            statement = Statement(construct, lists=names)
            self._together[dialect, names] = statement
        return statement.bound_rows(transaction, rows)

    def _several(self, dialect: str, **parameters: list[Parameter]) -> ClauseElement:
        columns = self._table.c
        names = tuple(parameters)
        return self._insert(dialect).values(
            [
                {
                    name: bindparam(parameter.key, type_=columns[name].type)
                    for name, parameter in zip(names, row, strict=True)
                }
                for row in zip(*parameters.values(), strict=True)
            ]
        )

    def _insert(self, dialect: str) -> Insert:
        if self._unless_taken is None:
            return insert(self._table)
        return dialect_named(dialect).insert_unless_taken(self._table, self._unless_taken)


class UpdateRows:
    """Updates rows by their ids, each with its own values: many rows by one statement."""

    # The database compares each row with each id of the statement.
    _TOGETHER_MAX = 128

    def __init__(self, table: Table, names: Sequence[str], common: Sequence[str] = ()) -> None:
        """`names` are columns with a value for each row, `common` columns with one for all."""
        self._table = table
        self._lists = ("id", *names)
        self._common = tuple(common)
        self._statement = Statement(self._construct, lists=self._lists)

    def bound(
        self, transaction: HasSqlDialect, rows: Sequence[Values], common: Values | None = None
    ) -> list[BoundStatement]:
        """The statements that update the rows. Each row has an `id` and a value for each name."""
        lists = (
            {name: [row[name] for row in chunk] for name in self._lists}
            for chunk in chunks(rows, self._TOGETHER_MAX)
        )
        return [self._statement.bound(transaction, {**list_, **(common or {})}) for list_ in lists]

    def _construct(self, **parameters: list[Parameter]) -> ClauseElement:
        columns = self._table.c
        ids = parameters.pop("id")
        new: dict[str, ColumnElement[Any]] = {
            name: case(
                *(
                    (columns.id == id_, type_coerce(value, columns[name].type))
                    for id_, value in zip(ids, values, strict=True)
                ),
                # For no row. It tells the database the type of a column of nulls.
                else_=columns[name],
            )
            for name, values in parameters.items()
        }
        for name in self._common:
            new[name] = bindparam(name, type_=columns[name].type)
        return update(self._table).where(columns.id.in_(ids)).values(new)


class DeletePairs:
    """Deletes rows of a table of pairs, by the values of both columns: many rows by few statements.

    A statement has one value of one column, and a list of values of the second.
    """

    def __init__(self, first: Column[Any], second: Column[Any]) -> None:
        self._of_first, self._of_second = (
            Statement.among(many, delete(one.table).where(one == bindparam("common")))
            for one, many in ((first, second), (second, first))
        )

    def bound(
        self, transaction: HasSqlDialect, pairs: Iterable[tuple[Any, Any]]
    ) -> list[BoundStatement]:
        """The statements that delete the rows with these pairs of values."""
        of_first: dict[Any, list[Any]] = {}
        of_second: dict[Any, list[Any]] = {}
        for first, second in pairs:
            of_first.setdefault(first, []).append(second)
            of_second.setdefault(second, []).append(first)
        statement, groups = self._of_first, of_first
        if len(of_second) < len(of_first):
            statement, groups = self._of_second, of_second
        return [
            bound
            for common, members in groups.items()
            for bound in statement.bound_chunks(transaction, members, {"common": common})
        ]


def _parameter_name(name: str, index: int) -> str:
    return f"{name}_{index}"


def _filled(members: Sequence[Any]) -> Sequence[Any]:
    """The members, the last one repeated up to a power of two.

    >>> _filled([5, 6, 7]), _filled([])
    ([5, 6, 7, 7], [])
    """
    missing = (1 << (len(members) - 1).bit_length()) - len(members) if members else 0
    return members if not missing else [*members, *[members[-1]] * missing]


# Queries: statements that read, compiled once, whose rows come from the driver itself.
#
# SQLAlchemy's execution and its result take 30 to 60 microseconds for each statement. Most of these
# statements take SQLite less than 10.


class Query(Statement):
    """A statement that only reads, in a transaction or without one.

    Its rows are those of the driver. A time is a text on SQLite (`stored_time`), and a sum is a
    decimal number on MySQL.
    """

    def fetch(self, connection: Connection, values: Values) -> Sequence[Any]:
        """All rows."""
        return fetch_directly(connection, *self._bound(connection.dialect, values))

    def fetch_one(self, connection: Connection, values: Values) -> Any | None:
        """The first row; `None` if there is none."""
        rows = self.fetch(connection, values)
        return rows[0] if rows else None

    def fetch_members(self, connection: Connection, members: Iterable[Any]) -> list[Any]:
        """All rows for the members of its only list, by as many executions as necessary."""
        return [row for chunk in self._chunks(members) for row in self.fetch(connection, chunk)]
