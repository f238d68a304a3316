"""The change journal: which provider changed in which way, written with the change itself.

Every process keeps its picture of the cloud equal to the tables by reading what is new here, so
a write that is not journalled is a write that others do not see.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import Connection

from roost.store.clock import utc_now
from roost.store.statements import InsertRows
from roost.store.tables import roost_changes


class ChangeKind(StrEnum):
    """What has to be read again after a change. A claim touches usage only: the cheap case."""

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
    """Note that these providers, given as (id, uuid), changed in this way."""
    now = utc_now()
    _INSERT.run(
        connection,
        [
            {"created_at": now, "kind": kind.value, "provider_id": id_, "provider_uuid": uuid}
            for id_, uuid in providers
        ],
    )


def record_vocabulary_change(connection: Connection, kind: ChangeKind) -> None:
    """Note that names of resource classes or traits came, went or changed."""
    _INSERT.run(connection, [{"created_at": utc_now(), "kind": kind.value}])
