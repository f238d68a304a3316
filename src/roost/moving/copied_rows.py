"""The rows of a copied server, as an export.

Generations stay as they are, so what clients remember stays right. Ids are new, and all times are
that of the copy, because the API tells neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import os_resource_classes

from roost.client.placement import ProviderBody
from roost.client.reading.survey import SurveyFailed
from roost.model.identifiers import is_custom
from roost.moving.export_format import export_lines, new_digests
from roost.moving.server_copy import CopiedServer
from roost.moving.survey_file import SurveyFile
from roost.store.rows.inventories import AMOUNTS
from roost.store.rows.vocabulary import FIRST_CUSTOM_CLASS_ID
from roost.store.tables import utc_now
from roost.store.transfer import LAYOUT, TransferTable

CopyRows = Iterator[dict[str, Any]]


def write_copy(copied: CopiedServer, file: SurveyFile, export: IO[bytes]) -> None:
    """Write an export with the rows of the copied server."""
    rows = _CopiedRows(copied, file)
    # The Placement API tells no owners.
    parts = [part for part in LAYOUT if not part.is_optional]
    counts = {part.name: sum(1 for _ in rows.of(part.name)) for part in parts}
    now = utc_now()

    def pages_of(part: TransferTable) -> Iterator[Sequence[Any]]:
        for row in rows.of(part.name):
            yield [[{"created_at": now, **row}.get(name) for name in part.columns]]

    export.writelines(export_lines(counts, new_digests(parts), pages_of))


class _CopiedRows:
    """The rows of each table, and the ids that they have got."""

    def __init__(self, copied: CopiedServer, file: SurveyFile) -> None:
        self._file = file
        self._providers = _parents_first(copied.providers)
        self._classes = _class_ids(copied.classes, self._classes_in_use())
        self._traits = _numbered(copied.traits)
        self._provider_ids = {body["uuid"]: id_ for id_, body in enumerate(self._providers, 1)}
        consumers = [consumer for _, consumer in file.consumers()]
        self._projects = _numbered({consumer.project for consumer in consumers})
        self._users = _numbered({consumer.user for consumer in consumers})
        self._types = _numbered({one.type for one in consumers if one.type is not None})
        self._aggregates = _numbered(
            {uuid for body in self._providers for uuid in file.provider(body["uuid"]).aggregates}
        )

    def of(self, table: str) -> CopyRows:
        """The rows of a table, in their order."""
        makers: dict[str, Callable[[], CopyRows]] = {
            "resource_classes": lambda: _named(self._classes, "name"),
            "traits": lambda: _named(self._traits, "name"),
            "placement_aggregates": lambda: _named(self._aggregates, "uuid"),
            "projects": lambda: _named(self._projects, "external_id"),
            "users": lambda: _named(self._users, "external_id"),
            "consumer_types": lambda: _named(self._types, "name"),
            "consumers": self._consumer_rows,
            "resource_providers": self._provider_rows,
            "inventories": self._inventory_rows,
            "resource_provider_traits": self._trait_rows,
            "resource_provider_aggregates": self._aggregate_rows,
            "allocations": self._allocation_rows,
        }
        return makers[table]()

    def _classes_in_use(self) -> set[str]:
        return {
            name
            for body in self._providers
            for name in self._file.provider(body["uuid"]).inventories
        }

    def _consumer_rows(self) -> CopyRows:
        for id_, (uuid, consumer) in enumerate(self._file.consumers(), 1):
            yield {
                "id": id_,
                "uuid": uuid,
                "project_id": self._projects[consumer.project],
                "user_id": self._users[consumer.user],
                "generation": consumer.generation,
                "consumer_type_id": None if consumer.type is None else self._types[consumer.type],
            }

    def _provider_rows(self) -> CopyRows:
        for body in self._providers:
            parent = body["parent_provider_uuid"]
            yield {
                "id": self._provider_ids[body["uuid"]],
                "uuid": body["uuid"],
                "name": body["name"],
                "generation": body["generation"],
                "root_provider_id": self._provider_ids[body["root_provider_uuid"]],
                "parent_provider_id": None if parent is None else self._provider_ids[parent],
            }

    def _inventory_rows(self) -> CopyRows:
        id_ = 0
        for uuid, provider_id in self._provider_ids.items():
            for name, fields in sorted(self._file.provider(uuid).inventories.items()):
                id_ += 1
                yield {
                    "id": id_,
                    "resource_provider_id": provider_id,
                    "resource_class_id": self._classes[name],
                    **{field: fields[field] for field in AMOUNTS},
                    "allocation_ratio": float(fields["allocation_ratio"]),
                }

    def _trait_rows(self) -> CopyRows:
        for uuid, provider_id in self._provider_ids.items():
            for trait_id in sorted(self._traits[name] for name in self._file.provider(uuid).traits):
                yield {"trait_id": trait_id, "resource_provider_id": provider_id}

    def _aggregate_rows(self) -> CopyRows:
        for uuid, provider_id in self._provider_ids.items():
            found = self._file.provider(uuid).aggregates
            for aggregate_id in sorted(self._aggregates[aggregate] for aggregate in found):
                yield {"resource_provider_id": provider_id, "aggregate_id": aggregate_id}

    def _allocation_rows(self) -> CopyRows:
        id_ = 0
        for consumer_uuid, consumer in self._file.consumers():
            for uuid, held in sorted(consumer.allocations.items()):
                for name, used in sorted(held.items()):
                    id_ += 1
                    yield {
                        "id": id_,
                        "resource_provider_id": self._provider_ids[uuid],
                        "consumer_id": consumer_uuid,
                        "resource_class_id": self._classes[name],
                        "used": used,
                    }


def _numbered(names: Iterable[str]) -> dict[str, int]:
    """An id for each name, in the order of the names.

    >>> _numbered({"b", "a"})
    {'a': 1, 'b': 2}
    """
    return {name: id_ for id_, name in enumerate(sorted(names), 1)}


def _named(ids: dict[str, int], column: str) -> CopyRows:
    for name, id_ in sorted(ids.items(), key=lambda pair: pair[1]):
        yield {"id": id_, column: name}


def _class_ids(names: Iterable[str], in_use: set[str]) -> dict[str, int]:
    """The ids of resource classes: of a standard class, its position in the library."""
    standard = os_resource_classes.STANDARDS
    ids = {name: standard.index(name) for name in names if name in standard}
    custom = sorted(name for name in names if is_custom(name))
    ids |= {name: FIRST_CUSTOM_CLASS_ID + number for number, name in enumerate(custom)}
    unknown = sorted(in_use - ids.keys())
    if unknown:
        raise SurveyFailed(
            f"Providers have standard resource classes that os-resource-classes does not know "
            f"here: {', '.join(unknown)}. Upgrade it with: pip install -U os-resource-classes"
        )
    return ids


def _parents_first(providers: list[ProviderBody]) -> list[ProviderBody]:
    """The providers, each after its parent."""
    children: dict[str | None, list[ProviderBody]] = {}
    for body in providers:
        children.setdefault(body["parent_provider_uuid"], []).append(body)
    ordered = list(children.get(None, []))
    # The list grows while the loop goes through it.
    for body in ordered:
        ordered += children.get(body["uuid"], [])
    return ordered
