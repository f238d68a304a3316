"""`/resource_providers/{uuid}/inventories`."""

from __future__ import annotations

from roost.api.openapi.operation import JsonBody, Operation, Success
from roost.api.openapi.operations.providers import UNKNOWN_PROVIDER
from roost.api.schemas import inventories as schemas
from roost.api.schemas.building import ByVersion
from roost.api.schemas.responses import inventories as answers

_TAG = "Inventories"
_FIELDS = {"total": 16, "reserved": 2, "max_unit": 16, "allocation_ratio": 4.0}
_CHANGED = (
    "The generation is not that of the provider, or another request changed the provider at the "
    "same time: read again."
)
_BAD = "The body does not fit the schema, the class does not exist, or no capacity is left."

OPERATIONS = {
    "GET /resource_providers/{uuid}/inventories": Operation(
        "list_inventories",
        _TAG,
        "List inventories",
        "All inventories of the provider.",
        {200: Success("The inventories.", answers.INVENTORIES, headers=("cached",))},
        {404: UNKNOWN_PROVIDER},
    ),
    "POST /resource_providers/{uuid}/inventories": Operation(
        "create_inventory",
        _TAG,
        "Add an inventory",
        "Adds the inventory of one resource class.",
        {201: Success("The inventory.", answers.INVENTORY, headers=("location", "cached"))},
        {
            400: _BAD,
            404: UNKNOWN_PROVIDER,
            409: "The provider has an inventory of the class.",
        },
        body=JsonBody(
            "NewInventory",
            "The new inventory. Fields that are left out get their defaults.",
            schemas.ADD,
            ByVersion(("1.0", {"resource_class": "VCPU", **_FIELDS})),
        ),
    ),
    "PUT /resource_providers/{uuid}/inventories": Operation(
        "replace_inventories",
        _TAG,
        "Replace all inventories",
        "Replaces all inventories of the provider. Fields that are left out get their defaults.",
        {200: Success("The inventories.", answers.INVENTORIES, headers=("cached",))},
        {
            400: _BAD,
            404: UNKNOWN_PROVIDER,
            409: f"{_CHANGED} Or a consumer holds a class that is to go.",
        },
        body=JsonBody(
            "NewInventories",
            "All inventories, by resource class, and the generation of the provider.",
            schemas.REPLACE_ALL,
            ByVersion(
                ("1.0", {"resource_provider_generation": 3, "inventories": {"VCPU": _FIELDS}})
            ),
        ),
    ),
    "DELETE /resource_providers/{uuid}/inventories": Operation(
        "delete_inventories",
        _TAG,
        "Delete all inventories",
        "Deletes all inventories of the provider, of which no consumer holds anything.",
        {204: Success("The inventories are gone.")},
        {
            404: UNKNOWN_PROVIDER,
            405: "The version has no such method: it begins with 1.5.",
            409: "A consumer holds resources of the provider.",
        },
    ),
    "GET /resource_providers/{uuid}/inventories/{resource_class}": Operation(
        "show_inventory",
        _TAG,
        "Show an inventory",
        "The inventory of one resource class.",
        {200: Success("The inventory.", answers.INVENTORY, headers=("cached",))},
        {404: "No provider has this uuid, or the provider has no inventory of the class."},
    ),
    "PUT /resource_providers/{uuid}/inventories/{resource_class}": Operation(
        "replace_inventory",
        _TAG,
        "Replace an inventory",
        "Replaces the inventory of one resource class, which must exist.",
        {200: Success("The inventory.", answers.INVENTORY, headers=("cached",))},
        {
            400: f"{_BAD} Or the provider has no inventory of the class.",
            404: "No provider has this uuid, or no resource class has this name.",
            409: _CHANGED,
        },
        body=JsonBody(
            "ChangedInventory",
            "The inventory, and the generation of the provider.",
            schemas.REPLACE_ONE,
            ByVersion(("1.0", {"resource_provider_generation": 3, **_FIELDS})),
        ),
    ),
    "DELETE /resource_providers/{uuid}/inventories/{resource_class}": Operation(
        "delete_inventory",
        _TAG,
        "Delete an inventory",
        "Deletes the inventory of one resource class.",
        {204: Success("The inventory is gone.")},
        {
            404: "No provider has this uuid, or the provider has no inventory of the class.",
            409: "A consumer holds resources of the class.",
        },
    ),
}
