"""The JSON body of an ownership record, as its file has it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from roost.client.ownership.record import Absence, OwnedProvider, OwnershipRecord
from roost.client.ownership.recorded_server import RecordedServer


def rendered_record(record: OwnershipRecord) -> dict[str, Any]:
    """The record as a JSON value."""
    body = {"providers": {uuid: _rendered(owned) for uuid, owned in record.providers.items()}}
    return body if record.server is None else body | {"server": asdict(record.server)}


def parsed_record(body: Mapping[str, Any]) -> OwnershipRecord:
    """The record of a JSON value; errors of Python tell that it is none."""
    return OwnershipRecord(
        {uuid: _parsed(owned) for uuid, owned in body["providers"].items()},
        _parsed_server(body["server"]) if "server" in body else None,
    )


def _rendered(owned: OwnedProvider) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": owned.name,
        "created": owned.created,
        "inventories": {name: sorted(fields) for name, fields in owned.inventories.items()},
        "traits": sorted(owned.traits),
        "aggregates": sorted(owned.aggregates),
    }
    return body if owned.absence is None else body | {"absence": asdict(owned.absence)}


def _parsed(body: Mapping[str, Any]) -> OwnedProvider:
    return OwnedProvider(
        body["name"],
        bool(body["created"]),
        {name: frozenset(fields) for name, fields in body["inventories"].items()},
        frozenset(body["traits"]),
        frozenset(body["aggregates"]),
        _parsed_absence(body["absence"]) if "absence" in body else None,
    )


def _parsed_server(body: Mapping[str, Any]) -> RecordedServer:
    values = (body[key] for key in ("identity", "url", "project_id"))
    return RecordedServer(*(None if value is None else str(value) for value in values))


def _parsed_absence(body: Mapping[str, Any]) -> Absence:
    since, last, seconds = (float(body[key]) for key in ("since", "last", "seconds"))
    absence = Absence(int(body["reports"]), since, last, seconds)
    # With a time that is no number, the provider would be missing for ever.
    if not math.isfinite(since + last + seconds):
        raise ValueError("the time of an absence is no number")
    return absence
