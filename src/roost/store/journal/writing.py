"""Writing to the change journal, in the transaction of the change itself.

Other processes do not see a change that is not recorded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from roost.store.statements import InsertRows
from roost.store.tables import roost_changes
from roost.store.transaction import Transaction

# A longer text of usages is left out: the reader then reads the usages again.
USAGES_LENGTH_MAX = 255

_INSERT = InsertRows(roost_changes)


class ChangeKind(StrEnum):
    """What a reader reads again after a change. Usage is the cheap case, and that of claims."""

    PROVIDER = "provider"
    INVENTORIES = "inventories"
    TRAITS = "traits"
    AGGREGATES = "aggregates"
    USAGE = "usage"
    RESOURCE_CLASSES = "resource_classes"
    TRAIT_NAMES = "trait_names"


def record_changes(
    transaction: Transaction, kind: ChangeKind, providers: Iterable[tuple[int, str]]
) -> None:
    """Record that these providers, given as (id, uuid), changed in this way."""
    _record(
        transaction, kind, ({"provider_id": id_, "provider_uuid": uuid} for id_, uuid in providers)
    )


def record_usages(
    transaction: Transaction, providers: Iterable[tuple[int, str, Mapping[int, int] | None]]
) -> None:
    """Record changed usages of providers, given as (id, uuid, usages).

    The usages are the new sums of all allocations, by resource class: those that the writer has
    changed. With `None`, a reader reads all usages of the provider again.

    A reader takes the usages of the row with the highest id. So the writer locks the provider
    before it reads the sums, and keeps the lock until the end of its transaction.
    """
    rows = (
        {
            "provider_id": id_,
            "provider_uuid": uuid,
            "usages": None if usages is None else usages_text(usages),
        }
        for id_, uuid, usages in providers
    )
    _record(transaction, ChangeKind.USAGE, rows)


def record_vocabulary_change(transaction: Transaction, kind: ChangeKind) -> None:
    """Record that names of resource classes or traits were added, removed or changed."""
    _record(transaction, kind, [{}])


def _record(
    transaction: Transaction, kind: ChangeKind, rows: Iterable[Mapping[str, object]]
) -> None:
    common = {"created_at": transaction.now, "kind": kind.value}
    transaction.write(_INSERT.bound(transaction, [{**common, **row} for row in rows]))


def usages_text(usages: Mapping[int, int]) -> str | None:
    """Usages by resource class as one text; `None` if it would be too long.

    >>> usages_text({0: 4, 2: 1024})
    '0:4,2:1024'
    """
    text = ",".join([f"{class_id}:{used}" for class_id, used in usages.items()])
    return text if len(text) <= USAGES_LENGTH_MAX else None


def parse_usages(text: str) -> dict[int, int] | None:
    """The usages in such a text; `None` for an empty text.

    >>> parse_usages("0:4,2:1024")
    {0: 4, 2: 1024}
    """
    if not text:
        return None
    pairs = [pair.split(":") for pair in text.split(",")]
    return {int(class_id): int(used) for class_id, used in pairs}
