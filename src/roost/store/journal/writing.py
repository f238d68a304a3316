"""Writing to the change journal, in the transaction of the change itself.

Other processes do not see a change that is not recorded here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import Connection

from roost.store.statements import InsertRows
from roost.store.tables import roost_changes, utc_now


class ChangeKind(StrEnum):
    """What a reader reads again after a change. Usage is the cheap case, and that of claims."""

    PROVIDER = "provider"
    INVENTORIES = "inventories"
    TRAITS = "traits"
    AGGREGATES = "aggregates"
    USAGE = "usage"
    RESOURCE_CLASSES = "resource_classes"
    TRAIT_NAMES = "trait_names"


_INSERT = InsertRows(roost_changes)


def record_changes(
    connection: Connection, kind: ChangeKind, providers: Iterable[tuple[int, str]]
) -> None:
    """Record that these providers, given as (id, uuid), changed in this way."""
    now = utc_now()
    _INSERT.run(
        connection,
        [
            {"created_at": now, "kind": kind.value, "provider_id": id_, "provider_uuid": uuid}
            for id_, uuid in providers
        ],
    )


def record_vocabulary_change(connection: Connection, kind: ChangeKind) -> None:
    """Record that names of resource classes or traits were added, removed or changed."""
    _INSERT.run(connection, [{"created_at": utc_now(), "kind": kind.value}])
