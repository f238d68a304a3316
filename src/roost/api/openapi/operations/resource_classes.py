"""`/resource_classes`."""

from __future__ import annotations

from roost.api.openapi.operation import JsonBody, Operation, Success
from roost.api.schemas import resource_classes as schemas
from roost.api.schemas.building import ByVersion
from roost.api.schemas.responses import names

_TAG = "Resource classes"
_EXAMPLE = {"name": "CUSTOM_GOLD"}
_UNKNOWN = "No resource class has this name."

OPERATIONS = {
    "GET /resource_classes": Operation(
        "list_resource_classes",
        _TAG,
        "List resource classes",
        "All resource classes, standard and custom.",
        {200: Success("The resource classes.", names.RESOURCE_CLASSES, headers=("cached",))},
    ),
    "POST /resource_classes": Operation(
        "create_resource_class",
        _TAG,
        "Create a resource class",
        "Creates a custom resource class. From 1.7 on, `PUT /resource_classes/{name}` is simpler.",
        {201: Success("The resource class exists now.", headers=("location",))},
        {
            400: "The body has no name of a custom resource class.",
            409: "A resource class has this name.",
        },
        body=JsonBody(
            "NewResourceClass",
            "The name of the new class.",
            schemas.CREATE,
            ByVersion(("1.2", _EXAMPLE)),
        ),
    ),
    "GET /resource_classes/{name}": Operation(
        "show_resource_class",
        _TAG,
        "Show a resource class",
        "One resource class.",
        {200: Success("The resource class.", names.RESOURCE_CLASS, headers=("cached",))},
        {404: _UNKNOWN},
    ),
    "PUT /resource_classes/{name} until 1.6": Operation(
        "rename_resource_class",
        _TAG,
        "Rename a resource class",
        "Renames a custom resource class, in use or not.",
        {200: Success("The resource class with its new name.", names.RESOURCE_CLASS)},
        {
            400: "The class is a standard one, or the new name is no name of a custom class.",
            404: _UNKNOWN,
            409: "Another resource class has the new name.",
        },
        body=JsonBody(
            "ResourceClassName",
            "The new name of the class.",
            schemas.RENAME,
            ByVersion(("1.2", _EXAMPLE)),
        ),
    ),
    "PUT /resource_classes/{name}": Operation(
        "ensure_resource_class",
        _TAG,
        "Create or confirm a resource class",
        "Creates a custom resource class, unless it exists. The service ignores a body.",
        {
            201: Success("The resource class exists now.", headers=("location",)),
            204: Success("The resource class existed before.", headers=("location",)),
        },
        {400: "The name is no name of a custom resource class."},
    ),
    "DELETE /resource_classes/{name}": Operation(
        "delete_resource_class",
        _TAG,
        "Delete a resource class",
        "Deletes a custom resource class of which no provider has inventory.",
        {204: Success("The resource class is gone.")},
        {
            400: "The class is a standard one.",
            404: _UNKNOWN,
            409: "A provider has inventory of the class.",
        },
    ),
}
