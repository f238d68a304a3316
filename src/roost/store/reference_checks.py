"""Checks of references between rows, which no constraint guarantees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Select

from roost.store.findings import Level
from roost.store.row_checks import RowCheck
from roost.store.row_rules import REFERENCES, Reference
from roost.store.tables import consumer_types


def reference_checks(*, with_types: bool) -> Iterator[RowCheck]:
    """A check for each reference; without the types of consumers where the schema has none."""
    for reference in REFERENCES:
        if with_types or reference.target is not consumer_types:
            yield RowCheck(
                reference.name,
                Level.FAILURE,
                _dangling(reference),
                reference.problem,
                reference.remedy,
            )


def _dangling(reference: Reference) -> Select[Any]:
    """Examples of the rows that refer to a row that does not exist."""
    table, target = reference.table, reference.target
    example = reference.columns[0] if reference.example is None else reference.example
    pairs = zip(reference.columns, reference.targets, strict=True)
    return (
        sa.select(example)
        .distinct()
        .outerjoin_from(table, target, sa.and_(*(there == here for here, there in pairs)))
        .where(reference.targets[0].is_(None), *(one.is_not(None) for one in reference.columns))
    )
