"""`/resource_providers`, and what a provider tells about its consumers."""

from __future__ import annotations

from roost.api.microversions import Microversion
from roost.api.openapi.operation import (
    JsonBody,
    Operation,
    ParameterText,
    QueryString,
    Success,
)
from roost.api.schemas import providers as schemas
from roost.api.schemas.building import ByVersion
from roost.api.schemas.responses import providers as answers

_TAG = "Resource providers"
_UUID = "c0ffee00-0000-4000-8000-000000000001"
_AGGREGATE = "42896e0d-205d-4fe3-bd1e-100924931787"
UNKNOWN_PROVIDER = "No provider has this uuid."

_LIST = QueryString(
    schemas.LIST,
    {
        "name": ParameterText("Only the provider with exactly this name.", "host-1"),
        "uuid": ParameterText("Only the provider with this uuid.", _UUID),
        "member_of": ParameterText(
            "Only providers in the aggregate. `in:A,B` means at least one of several, and, from "
            "1.32 on, `!A` or `!in:A,B` none of them. Each of several values must hold.",
            f"in:{_AGGREGATE}",
            repeated_since=Microversion(1, 24),
        ),
        "resources": ParameterText(
            "Only providers that have room for all of these amounts.", "VCPU:4,MEMORY_MB:8192"
        ),
        "in_tree": ParameterText("Only providers in the tree of this provider.", _UUID),
        "required": ParameterText(
            "Only providers with all of these traits, or, from 1.22 on and after a `!`, without "
            "them. From 1.39 on `in:A,B` means at least one of several.",
            "HW_CPU_X86_AVX2,HW_CPU_X86_VMX",
            repeated_since=Microversion(1, 39),
        ),
    },
)

OPERATIONS = {
    "GET /resource_providers": Operation(
        "list_resource_providers",
        _TAG,
        "List providers",
        "The providers that pass all filters. A filter concerns the provider itself, not its tree.",
        {200: Success("The providers.", answers.PROVIDERS, headers=("cached",))},
        {400: "A parameter is unknown to the version, malformed, or names an unknown thing."},
        queries=(_LIST,),
    ),
    "POST /resource_providers": Operation(
        "create_resource_provider",
        _TAG,
        "Create a provider",
        "Creates a provider. From 1.14 on it may have a parent.",
        {
            201: Success(
                "The provider exists now.", headers=("location",), until=Microversion(1, 19)
            ),
            200: Success(
                "The provider exists now.",
                answers.PROVIDER,
                headers=("location", "cached"),
                since=Microversion(1, 20),
            ),
        },
        {
            400: "The body does not fit the schema, or the parent does not exist.",
            409: "A provider has this name or this uuid.",
        },
        body=JsonBody(
            "NewResourceProvider",
            "The new provider. Without a uuid the service makes one up.",
            schemas.CREATE,
            ByVersion(
                ("1.0", {"name": "host-1", "uuid": _UUID}),
                ("1.14", {"name": "host-1", "uuid": _UUID, "parent_provider_uuid": None}),
            ),
        ),
    ),
    "GET /resource_providers/{uuid}": Operation(
        "show_resource_provider",
        _TAG,
        "Show a provider",
        "One provider.",
        {200: Success("The provider.", answers.PROVIDER, headers=("cached",))},
        {404: UNKNOWN_PROVIDER},
    ),
    "PUT /resource_providers/{uuid}": Operation(
        "update_resource_provider",
        _TAG,
        "Rename or move a provider",
        "Renames a provider. From 1.14 on a root may get a parent. From 1.37 on every provider may "
        "get another parent or none, and its subtree follows. Without `parent_provider_uuid` the "
        "parent stays.",
        {200: Success("The provider after the change.", answers.PROVIDER, headers=("cached",))},
        {
            400: "The body does not fit the schema, or the version forbids the new parent.",
            404: UNKNOWN_PROVIDER,
            409: "Another provider has the name.",
        },
        body=JsonBody(
            "ChangedResourceProvider",
            "The name and, from 1.14 on, the parent of the provider.",
            schemas.UPDATE,
            ByVersion(
                ("1.0", {"name": "host-1"}),
                ("1.14", {"name": "host-1", "parent_provider_uuid": None}),
            ),
        ),
    ),
    "DELETE /resource_providers/{uuid}": Operation(
        "delete_resource_provider",
        _TAG,
        "Delete a provider",
        "Deletes a provider with its inventories. It must have neither children nor allocations.",
        {204: Success("The provider is gone.")},
        {404: UNKNOWN_PROVIDER, 409: "The provider has children or allocations."},
    ),
    "GET /resource_providers/{uuid}/usages": Operation(
        "show_provider_usages",
        _TAG,
        "Show what is used of a provider",
        "The amounts that consumers hold of the provider.",
        {200: Success("The usages.", answers.USAGES, headers=("cached",))},
        {404: UNKNOWN_PROVIDER},
    ),
    "GET /resource_providers/{uuid}/allocations": Operation(
        "list_provider_allocations",
        _TAG,
        "List the consumers of a provider",
        "The allocations of the provider, by consumer.",
        {200: Success("The allocations.", answers.ALLOCATIONS, headers=("cached",))},
        {404: UNKNOWN_PROVIDER},
    ),
}
