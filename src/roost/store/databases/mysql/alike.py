"""Texts that a collation of MySQL takes for one, such as two that differ in case only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection

from roost.store.statements import chunks


def find_alike(
    connection: Connection, column: Column[str], texts: Iterable[str]
) -> tuple[str, str] | None:
    """Two of the texts that are one to the collation of the column; `None` if all differ.

    Python finds texts that resemble each other, and the server compares only those.
    """
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(_rough(text), []).append(text)
    similar = [
        text for group in groups.values() if len(group) > 1 for text in sorted(group, key=str.lower)
    ]
    for part in chunks(similar):
        for first, second in connection.execute(_first_pair(column, part)):
            return part[first], part[second]
    return None


def _rough(text: str) -> str:
    """The text without what collations ignore, and without some that they do not.

    >>> _rough("Élan 1 ") == _rough("elan 1")
    True
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in text.lower() if "!" <= sign <= "~")


def _first_pair(column: Column[str], texts: Iterable[str]) -> sa.Select[Any]:
    """The query for the places of two texts. The column gives its collation to all of them."""
    none = sa.select(column.label("text"), sa.literal(0).label("place")).where(sa.false())
    each = (
        sa.select(sa.literal(text), sa.literal(place, sa.Integer))
        for place, text in enumerate(texts)
    )
    compared = sa.union_all(none, *each).subquery()
    return (
        sa.select(sa.func.min(compared.c.place), sa.func.max(compared.c.place))
        .group_by(compared.c.text)
        .having(sa.func.count() > 1)
        .limit(1)
    )
