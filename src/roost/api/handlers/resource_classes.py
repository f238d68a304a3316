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
    json_response,
    newest,
    no_content,
    with_cache_headers,
    with_location,
)
from roost.api.http.validation import Schema
from roost.api.routing import CACHED, JsonBody, Route, Success
from roost.api.services import Services
from roost.service.tables import resource_classes

_NAME = text(CUSTOM_CLASS_NAME, maximum=255)
# From 1.7 on the name is in the path, and this schema checks it there.
NAME_IN_PATH = Schema(_NAME)
_NAMED = "1.2", record({"name": _NAME}), {"name": "CUSTOM_GOLD"}
_NEW = JsonBody("NewResourceClass", "The name of the new class.", _NAMED)
_RENAMED = JsonBody("ResourceClassName", "The new name of the class.", _NAMED)

_SELF = record({"rel": choice("self"), "href": STRING})
_EXAMPLE = {
    "name": "CUSTOM_GOLD",
    "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_GOLD"}],
}
_CLASS = AnswerSchema.of(
    "ResourceClass",
    "A resource class, standard or custom.",
    record({"name": STRING, "links": list_of(_SELF)}),
    example=_EXAMPLE,
)
_CLASSES = AnswerSchema.of(
    "ResourceClasses",
    "All resource classes, standard and custom.",
    record({"resource_classes": list_of(_CLASS)}),
    example={"resource_classes": [_EXAMPLE]},
)


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
    name = _NEW.parse(request)["name"]
    services.write(request, resource_classes.create_resource_class, name)
    return with_location(Response(201), request, _path(name))


def show(services: Services, request: Request) -> Response:
    """One resource class."""
    found = services.read(resource_classes.get_resource_class, request.parameters["name"])
    body = _representation(request, found.name)
    return with_cache_headers(json_response(body), request, found.modified_at)


def rename(services: Services, request: Request) -> Response:
    """Rename a custom resource class (1.2 to 1.6)."""
    new_name = _RENAMED.parse(request)["name"]
    found = services.write(
        request, resource_classes.rename_resource_class, request.parameters["name"], new_name
    )
    return json_response(_representation(request, found.name))


def ensure(services: Services, request: Request) -> Response:
    """Create a custom resource class, or confirm that it exists (from 1.7 on)."""
    name = request.parameters["name"]
    problem = NAME_IN_PATH.problem(name)
    if problem is not None:
        raise HttpError(400, f"JSON does not validate: {problem}")
    created = services.write(request, resource_classes.ensure_resource_class, name)
    return with_location(Response(201) if created else no_content(), request, _path(name))


def delete(services: Services, request: Request) -> Response:
    """Delete a custom resource class that is not in use."""
    services.write(request, resource_classes.delete_resource_class, request.parameters["name"])
    return no_content()


_SINCE = Microversion(1, 2)
_TAG = "Resource classes"
_UNKNOWN = "No resource class has this name."

ROUTES = (
    Route(
        "GET",
        "/resource_classes",
        list_all,
        rule="placement:resource_classes:list",
        since=_SINCE,
        id="list_resource_classes",
        tag=_TAG,
        summary="List resource classes",
        text="All resource classes, standard and custom.",
        successes={200: Success("The resource classes.", _CLASSES, CACHED)},
    ),
    Route(
        "POST",
        "/resource_classes",
        create,
        rule="placement:resource_classes:create",
        since=_SINCE,
        id="create_resource_class",
        tag=_TAG,
        summary="Create a resource class",
        text=(
            "Creates a custom resource class. From 1.7 on, `PUT /resource_classes/{name}` is "
            "simpler."
        ),
        successes={201: Success("The resource class exists now.", headers=("location",))},
        refusals={
            400: "The body has no name of a custom resource class.",
            409: "A resource class has this name.",
        },
        body=_NEW,
    ),
    Route(
        "GET",
        "/resource_classes/{name}",
        show,
        rule="placement:resource_classes:show",
        since=_SINCE,
        id="show_resource_class",
        tag=_TAG,
        summary="Show a resource class",
        text="One resource class.",
        successes={200: Success("The resource class.", _CLASS, CACHED)},
        refusals={404: _UNKNOWN},
    ),
    Route(
        "PUT",
        "/resource_classes/{name}",
        rename,
        rule="placement:resource_classes:update",
        since=_SINCE,
        until=Microversion(1, 6),
        id="rename_resource_class",
        tag=_TAG,
        summary="Rename a resource class",
        text="Renames a custom resource class, in use or not.",
        successes={200: Success("The resource class with its new name.", _CLASS)},
        refusals={
            400: "The class is a standard one, or the new name is no name of a custom class.",
            404: _UNKNOWN,
            409: "Another resource class has the new name.",
        },
        body=_RENAMED,
    ),
    Route(
        "PUT",
        "/resource_classes/{name}",
        ensure,
        rule="placement:resource_classes:update",
        since=Microversion(1, 7),
        id="ensure_resource_class",
        tag=_TAG,
        summary="Create or confirm a resource class",
        text="Creates a custom resource class, unless it exists. The service ignores a body.",
        successes={
            201: Success("The resource class exists now.", headers=("location",)),
            204: Success("The resource class existed before.", headers=("location",)),
        },
        refusals={400: "The name is no name of a custom resource class."},
    ),
    Route(
        "DELETE",
        "/resource_classes/{name}",
        delete,
        rule="placement:resource_classes:delete",
        since=_SINCE,
        id="delete_resource_class",
        tag=_TAG,
        summary="Delete a resource class",
        text="Deletes a custom resource class of which no provider has inventory.",
        successes={204: Success("The resource class is gone.")},
        refusals={
            400: "The class is a standard one.",
            404: _UNKNOWN,
            409: "A provider has inventory of the class.",
        },
    ),
)
