"""`/resource_classes`."""

from __future__ import annotations

from typing import Any

from roost.api.errors import HttpError
from roost.api.requests import Request
from roost.api.responses import (
    Response,
    json_response,
    newest,
    no_content,
    with_cache_headers,
    with_location,
)
from roost.api.schemas import resource_classes as schemas
from roost.api.services import Services
from roost.api.validation import parse_body
from roost.service import resource_classes


def _path(name: str) -> str:
    return f"/resource_classes/{name}"


def _representation(request: Request, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": request.prefix + _path(name)}]}


def list_all(services: Services, request: Request) -> Response:
    """All resource classes."""
    found = services.read(resource_classes.list_resource_classes)
    body = {"resource_classes": [_representation(request, item.name) for item in found]}
    modified_at = newest(item.modified_at for item in found)
    return with_cache_headers(json_response(body), request, modified_at)


def create(services: Services, request: Request) -> Response:
    """Create a custom resource class."""
    name = parse_body(request.body(), schemas.CREATE.at(request.version))["name"]
    services.write(request, resource_classes.create_resource_class, name)
    return with_location(Response(201), request, _path(name))


def show(services: Services, request: Request) -> Response:
    """One resource class."""
    found = services.read(resource_classes.get_resource_class, request.parameters["name"])
    body = _representation(request, found.name)
    return with_cache_headers(json_response(body), request, found.modified_at)


def rename(services: Services, request: Request) -> Response:
    """Rename a custom resource class (1.2 to 1.6)."""
    new_name = parse_body(request.body(), schemas.RENAME.at(request.version))["name"]
    found = services.write(
        request, resource_classes.rename_resource_class, request.parameters["name"], new_name
    )
    return json_response(_representation(request, found.name))


def ensure(services: Services, request: Request) -> Response:
    """Create a custom resource class, or confirm that it exists (from 1.7 on)."""
    name = request.parameters["name"]
    problem = schemas.NAME.at(request.version).problem(name)
    if problem is not None:
        raise HttpError(400, f"JSON does not validate: {problem}")
    created = services.write(request, resource_classes.ensure_resource_class, name)
    return with_location(Response(201) if created else no_content(), request, _path(name))


def delete(services: Services, request: Request) -> Response:
    """Delete a custom resource class that is not in use."""
    services.write(request, resource_classes.delete_resource_class, request.parameters["name"])
    return no_content()
