"""The answers of a service to every question about a small cloud."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from support.api_client import Answer, ApiClient

# Questions without a known defect of the reference.
CANDIDATES = (
    "resources=VCPU:1",
    "resources=VCPU:1,MEMORY_MB:64&limit=1000",
    "resources=VCPU:2&required=CUSTOM_T1",
    "resources_A=VCPU:1&resources_B=MEMORY_MB:64&group_policy=none",
    "resources=CUSTOM_GOLD:1",
)
_SINGLE = re.compile(
    "/(resource_providers|traits|resource_classes|allocations)/[^/?]*(/inventories/[^/]*)?"
)
LISTS = (
    "",
    "?resources=VCPU:1",
    "?required=CUSTOM_T1",
    "?required=!CUSTOM_T1",
)


def whole_answers(api: ApiClient) -> dict[str, Any]:
    """Every path with its status, body and time of the last change."""
    return {path: _plain(path, api.get(path)) for path in _paths(api)}


def _paths(api: ApiClient) -> Iterator[str]:
    yield from ("/resource_classes", "/traits", "/traits?associated=true")
    for named in api.get("/resource_classes").json["resource_classes"]:
        if named["name"].startswith("CUSTOM_"):
            yield f"/resource_classes/{named['name']}"
    for name in api.get("/traits").json["traits"]:
        if name.startswith("CUSTOM_"):
            yield f"/traits/{name}"
    yield from (f"/resource_providers{query}" for query in LISTS)
    consumers: set[str] = set()
    for provider in api.get("/resource_providers").json["resource_providers"]:
        path = f"/resource_providers/{provider['uuid']}"
        yield path
        for part in ("inventories", "usages", "aggregates", "traits", "allocations"):
            yield f"{path}/{part}"
        for name in api.get(f"{path}/inventories").json["inventories"]:
            yield f"{path}/inventories/{name}"
        for aggregate in api.get(f"{path}/aggregates").json["aggregates"]:
            yield f"/resource_providers?member_of={aggregate}"
        yield f"/resource_providers?in_tree={provider['uuid']}"
        consumers.update(api.get(f"{path}/allocations").json["allocations"])
    for consumer in sorted(consumers):
        yield f"/allocations/{consumer}"
        owner = api.get(f"/allocations/{consumer}").json
        project, user = quote(owner["project_id"]), quote(owner["user_id"])
        # Without a type, the reference fails on PostgreSQL.
        yield f"/usages?project_id={project}&user_id={user}&consumer_type=all"
        yield f"/usages?project_id={project}&consumer_type=all"
    yield from (f"/allocation_candidates?{query}" for query in CANDIDATES)


def _plain(path: str, answer: Answer) -> Any:
    body = answer.json if answer.body else None
    # An answer about several rows or none may have the time of the request.
    changed = answer.headers.get("last-modified") if _SINGLE.fullmatch(path) else None
    return answer.status, _sorted(body), changed


def _sorted(value: Any) -> Any:
    """The value with its lists in one order."""
    if isinstance(value, dict):
        return {name: _sorted(part) for name, part in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(part) for part in value), key=repr)
    return value
