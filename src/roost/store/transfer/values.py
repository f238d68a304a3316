"""What a database can hold of a row, and the row for its driver. Pure.

A row is a list as JSON has it: times are texts like `2026-11-15T21:36:37.286730`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from roost.store.transfer.layout import TransferTable

Convert = Callable[[list[Any]], list[Any]]

_MYSQL = ("mysql", "mariadb")
_SECONDS_LENGTH = len("2026-11-15T21:36:37")


def holding(part: TransferTable, dialect: str) -> Convert | None:
    """The conversion of a row to what this database can hold; `None` if it can hold all.

    MySQL keeps times in whole seconds, and ratios in single precision.
    """
    if dialect not in _MYSQL:
        return None
    times, ratios = part.positions(sa.DateTime), part.positions(sa.Float)

    def convert(row: list[Any]) -> list[Any]:
        held = list(row)
        for position in times:
            if held[position] is not None:
                held[position] = held[position][:_SECONDS_LENGTH]
        for position in ratios:
            held[position] = single_precision(held[position])
        return held

    return convert


def for_driver(part: TransferTable, dialect: str) -> Convert:
    """The conversion of a row to the values that the driver takes."""
    times = part.positions(sa.DateTime)
    spell = _SPELLINGS[dialect]

    def convert(row: list[Any]) -> list[Any]:
        for position in times:
            if row[position] is not None:
                row[position] = spell(row[position])
        return row

    return convert


def single_precision(number: float) -> float:
    """The number that MySQL shows after it has stored this one as FLOAT: six digits.

    >>> single_precision(16.1234567)
    16.1235
    """
    (stored,) = struct.unpack("f", struct.pack("f", number))
    return float(f"{stored:.6g}")


def _of_sqlite(time: str) -> str:
    """A time as SQLAlchemy writes it to SQLite, always with six digits of a second.

    >>> _of_sqlite("2026-11-15T21:36:37")
    '2026-11-15 21:36:37.000000'
    """
    fraction = time[_SECONDS_LENGTH + 1 :].ljust(6, "0")
    return f"{time[:10]} {time[11:_SECONDS_LENGTH]}.{fraction}"


def _of_mysql(time: str) -> str:
    return time[:_SECONDS_LENGTH].replace("T", " ")


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "sqlite": _of_sqlite,
    "postgresql": str,
    "mysql": _of_mysql,
    "mariadb": _of_mysql,
}
