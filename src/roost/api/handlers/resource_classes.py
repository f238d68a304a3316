"""`/resource_classes`."""

from __future__ import annotations

from typing import Any

from roost.api.http.errors import HttpError
from roost.api.http.json_schemas import (
    CUSTOM_CLASS_NAME,
    STRING,
    AnswerSchema,
    choice,
    list_of,
    record,
    text,
)
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import (
    Response,
    cached_json,
    json_response,
    newest,
    no_content,
    with_location,
)
from roost.api.http.validation import Schema
from roost.api.routing import CACHED, JsonBody, Route, Success, routes_of
from roost.api.services import Services
from roost.service.tables import resource_classes

_NAME = text(CUSTOM_CLASS_NAME, maximum=255)
# From 1.7 on the name is in the path, and this schema checks it there.
NAME_IN_PATH = Schema(_NAME)
_NAMED = "1.2", record({"name": _NAME})
_NEW = JsonBody("NewResourceClass", "The name of the new class.", _NAMED)
_RENAMED = JsonBody("ResourceClassName", "The new name of the class.", _NAMED)

_SELF = record(
    rel=choice("self"),
    href=STRING | {"examples": ["/resource_classes/CUSTOM_GOLD"]},
)
_CLASS = AnswerSchema.of(
    "ResourceClass",
    "A resource class, standard or custom.",
    record({"name": STRING | {"examples": ["CUSTOM_GOLD"]}, "links": list_of(_SELF)}),
)
_CLASSES = AnswerSchema.of(
    "ResourceClasses",
    "All resource classes, standard and custom.",
    record({"resource_classes": list_of(_CLASS)}),
)
_UNKNOWN = "No resource class has this name."


def _path(name: str) -> str:
    return f"/resource_classes/{name}"


def _representation(request: Request, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": request.prefix + _path(name)}]}


@Route(
    "GET",
    "/resource_classes",
    rule="placement:resource_classes:list",
    successes={200: Success("The resource classes.", _CLASSES, CACHED)},
)
def list_resource_classes(services: Services, request: Request) -> Response:
    """All resource classes, standard and custom."""
    found = services.read(resource_classes.list_resource_classes)
    body = {"resource_classes": [_representation(request, item.name) for item in found]}
    modified_at = newest(item.modified_at for item in found)
    return cached_json(request, body, modified_at)


@Route(
    "POST",
    "/resource_classes",
    rule="placement:resource_classes:create",
    successes={201: Success("The resource class exists now.", headers=("location",))},
    refusals={
        400: "The body has no name of a custom resource class.",
        409: "A resource class has this name.",
    },
    body=_NEW,
)
def create_resource_class(services: Services, request: Request) -> Response:
    """Create a custom resource class. From 1.7 on, `PUT /resource_classes/{name}` is simpler."""
    name = _NEW.parse(request)["name"]
    services.write(request, resource_classes.create_resource_class, name)
    return with_location(Response(201), request, _path(name))


@Route(
    "GET",
    "/resource_classes/{name}",
    rule="placement:resource_classes:show",
    successes={200: Success("The resource class.", _CLASS, CACHED)},
    refusals={404: _UNKNOWN},
)
def show_resource_class(services: Services, request: Request) -> Response:
    """One resource class."""
    found = services.read(resource_classes.get_resource_class, request.parameters["name"])
    body = _representation(request, found.name)
    return cached_json(request, body, found.modified_at)


@Route(
    "PUT",
    "/resource_classes/{name}",
    rule="placement:resource_classes:update",
    until=Microversion(1, 6),
    successes={200: Success("The resource class with its new name.", _CLASS)},
    refusals={
        400: "The class is a standard one, or the new name is no name of a custom class.",
        404: _UNKNOWN,
        409: "Another resource class has the new name.",
    },
    body=_RENAMED,
)
def rename_resource_class(services: Services, request: Request) -> Response:
    """Rename a custom resource class, in use or not."""
    new_name = _RENAMED.parse(request)["name"]
    found = services.write(
        request, resource_classes.rename_resource_class, request.parameters["name"], new_name
    )
    return json_response(_representation(request, found.name))


@Route(
    "PUT",
    "/resource_classes/{name}",
    rule="placement:resource_classes:update",
    since=Microversion(1, 7),
    summary="Create or confirm a resource class",
    successes={
        201: Success("The resource class exists now.", headers=("location",)),
        204: Success("The resource class existed before.", headers=("location",)),
    },
    refusals={400: "The name is no name of a custom resource class."},
)
def ensure_resource_class(services: Services, request: Request) -> Response:
    """Create a custom resource class, unless it exists. The service ignores a body."""
    name = request.parameters["name"]
    problem = NAME_IN_PATH.problem(name)
    if problem is not None:
        raise HttpError(400, f"JSON does not validate: {problem}")
    created = services.write(request, resource_classes.ensure_resource_class, name)
    return with_location(Response(201) if created else no_content(), request, _path(name))


@Route(
    "DELETE",
    "/resource_classes/{name}",
    rule="placement:resource_classes:delete",
    successes={204: Success("The resource class is gone.")},
    refusals={
        400: "The class is a standard one.",
        404: _UNKNOWN,
        409: "A provider has inventory of the class.",
    },
)
def delete_resource_class(services: Services, request: Request) -> Response:
    """Delete a custom resource class of which no provider has inventory."""
    services.write(request, resource_classes.delete_resource_class, request.parameters["name"])
    return no_content()


ROUTES = routes_of(
    "Resource classes",
    list_resource_classes,
    create_resource_class,
    show_resource_class,
    rename_resource_class,
    ensure_resource_class,
    delete_resource_class,
    since=Microversion(1, 2),
)
