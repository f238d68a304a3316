"""Writing to the change journal, in the transaction of the change itself.

Other processes do not see a change that is not recorded here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, TypedDict

from roost.store.statements import InsertRows
from roost.store.tables import roost_changes
from roost.store.transaction import Transaction

# A longer text of usages is left out: the reader then reads the usages again.
USAGES_LENGTH_MAX = 255
# A longer text of a writer loses user and project.
_WRITER_LENGTH_MAX = 640
# A longer text of a detail loses the classes: then any class may have changed.
_DETAIL_LENGTH_MAX = 4096

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


class ProviderEvent(StrEnum):
    """What a write did to a provider itself."""

    CREATED = "created"
    RENAMED = "renamed"
    MOVED = "moved"
    DELETED = "deleted"
    ADOPTED = "adopted"
    """The provider took another uuid."""


class ChangeDetail(TypedDict, total=False):
    """What the kind of a change does not say, and what readers cannot look up later."""

    # What happened to the provider itself.
    event: ProviderEvent
    name: str
    # The uuid of the root of a new or deleted provider, or of the tree that a provider left.
    root: str
    # The resource classes of changed inventories, by id.
    classes: list[int]


def record_changes(
    transaction: Transaction, kind: ChangeKind, providers: Iterable[tuple[int, str]]
) -> None:
    """Record that these providers, given as (id, uuid), changed in this way."""
    _record(
        transaction, kind, ({"provider_id": id_, "provider_uuid": uuid} for id_, uuid in providers)
    )


def record_details(
    transaction: Transaction,
    kind: ChangeKind,
    providers: Iterable[tuple[int, str, ChangeDetail]],
) -> None:
    """Record changes of providers, given as (id, uuid, detail)."""
    rows = (
        {"provider_id": id_, "provider_uuid": uuid, "detail": _detail_text(detail)}
        for id_, uuid, detail in providers
    )
    _record(transaction, kind, rows)


def _detail_text(detail: ChangeDetail) -> str:
    text = json.dumps(detail)
    if len(text) > _DETAIL_LENGTH_MAX:
        text = json.dumps({key: value for key, value in detail.items() if key != "classes"})
    return text


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
    common: dict[str, object] = {"created_at": transaction.now, "kind": kind.value}
    if transaction.writer is not None:
        common["writer"] = transaction.writer
    if transaction.number is not None:
        common["transaction_id"] = transaction.number
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


@lru_cache(maxsize=256)
def _caller_text(user_id: str | None, project_id: str | None) -> str:
    """User and project of a writer; few callers write nearly everything."""
    return f"{json.dumps(user_id)}, {json.dumps(project_id)}"


class Writer(NamedTuple):
    """The request that wrote, with its user and its project where they are known."""

    request_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None

    def text(self) -> str:
        """The writer for the journal, in ASCII, which every database stores.

        >>> Writer("req-1", "ada", None).text()
        '["req-1", "ada", null]'
        """
        request = json.dumps(self.request_id)
        text = f"[{request}, {_caller_text(self.user_id, self.project_id)}]"
        return text if len(text) <= _WRITER_LENGTH_MAX else f"[{request}]"

    @classmethod
    def parse(cls, text: str | None) -> Writer:
        """The writer in such a text. Older versions and other programs leave it out."""
        return cls(*json.loads(text)) if text else cls()
