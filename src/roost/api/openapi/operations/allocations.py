"""`/allocations`, `/usages` and `/reshaper`."""

from __future__ import annotations

from typing import Any

from roost.api.openapi.operation import (
    JsonBody,
    Operation,
    ParameterText,
    QueryString,
    Success,
)
from roost.api.schemas import allocations as schemas
from roost.api.schemas import usages as usage_schemas
from roost.api.schemas.building import ByVersion
from roost.api.schemas.responses import allocations as answers

_TAG = "Allocations"
_PROVIDER = "c0ffee00-0000-4000-8000-000000000001"
_CONSUMER = "c0ffee00-0000-4000-8000-00000000c001"
_PROJECT = "42a32c07-3eeb-4401-9373-68a8cdca6784"
_USER = "66cb2f29-c86d-47c3-8af5-69ae7b778c70"

_RESOURCES = {"resources": {"VCPU": 2, "MEMORY_MB": 4096}}
_LIST: dict[str, Any] = {
    "allocations": [{"resource_provider": {"uuid": _PROVIDER}, **_RESOURCES}],
}
_OWNER = {"project_id": _PROJECT, "user_id": _USER}
_BY_PROVIDER: dict[str, Any] = {"allocations": {_PROVIDER: _RESOURCES}, **_OWNER}
_WITH_GENERATION = _BY_PROVIDER | {"consumer_generation": None}
_WITH_MAPPINGS = _WITH_GENERATION | {"mappings": {"": [_PROVIDER]}}
_WITH_TYPE = _WITH_MAPPINGS | {"consumer_type": "INSTANCE"}
_NEW_INVENTORIES = {
    _PROVIDER: {"resource_provider_generation": 3, "inventories": {"VCPU": {"total": 16}}}
}

_BAD = "The body does not fit the schema, or a provider or resource class does not exist."
_NO_ROOM = (
    "A provider has no room or no such inventory, or the consumer generation is another. Or other "
    "requests changed the same providers too often."
)

_USAGES = QueryString(
    usage_schemas.LIST,
    {
        "project_id": ParameterText("The project.", _PROJECT),
        "user_id": ParameterText("Only consumers of this user.", _USER),
        "consumer_type": ParameterText(
            "Only consumers of this type. `unknown`: those without a type. `all`: one sum over all "
            "types.",
            "INSTANCE",
        ),
    },
)

OPERATIONS = {
    "POST /allocations": Operation(
        "replace_allocations_of_several",
        _TAG,
        "Replace the allocations of several consumers",
        "Replaces the allocations of all named consumers, all or none. An empty `allocations` "
        "releases what a consumer holds.",
        {204: Success("All consumers hold what the request says.")},
        {400: _BAD, 409: _NO_ROOM},
        body=JsonBody(
            "AllocationsOfSeveral",
            "The new allocations, by the uuid of the consumer.",
            schemas.POST,
            ByVersion(
                ("1.13", {_CONSUMER: _BY_PROVIDER}),
                ("1.28", {_CONSUMER: _WITH_GENERATION}),
                ("1.34", {_CONSUMER: _WITH_MAPPINGS}),
                ("1.38", {_CONSUMER: _WITH_TYPE}),
            ),
        ),
    ),
    "GET /allocations/{consumer}": Operation(
        "show_allocations",
        _TAG,
        "Show the allocations of a consumer",
        "What a consumer holds. An unknown consumer holds nothing: there is no 404.",
        {200: Success("The allocations.", answers.CONSUMER, headers=("cached",))},
    ),
    "PUT /allocations/{consumer}": Operation(
        "replace_allocations",
        _TAG,
        "Claim: replace the allocations of a consumer",
        "Replaces everything that the consumer holds, all or nothing. From 1.28 on "
        "`consumer_generation` must match; null means a new consumer. From 1.28 on an empty "
        "`allocations` releases everything.",
        {204: Success("The consumer holds what the request says.")},
        {400: _BAD, 409: _NO_ROOM},
        body=JsonBody(
            "Allocations",
            "The new allocations of the consumer.",
            schemas.PUT,
            ByVersion(
                ("1.0", _LIST),
                ("1.8", _LIST | _OWNER),
                ("1.12", _BY_PROVIDER),
                ("1.28", _WITH_GENERATION),
                ("1.34", _WITH_MAPPINGS),
                ("1.38", _WITH_TYPE),
            ),
        ),
    ),
    "DELETE /allocations/{consumer}": Operation(
        "delete_allocations",
        _TAG,
        "Release the allocations of a consumer",
        "Releases everything that the consumer holds, whatever its generation is.",
        {204: Success("The consumer holds nothing.")},
        {404: "The consumer holds nothing.", 409: "Other requests changed the same consumer."},
    ),
    "GET /usages": Operation(
        "show_usages",
        _TAG,
        "Show what a project uses",
        "The sums over all consumers of a project. Readers of a project may see their own.",
        {200: Success("The usages.", answers.USAGES, headers=("cached",))},
        {400: "A parameter is unknown or malformed, or the project is missing."},
        queries=(_USAGES,),
    ),
    "POST /reshaper": Operation(
        "reshape",
        _TAG,
        "Replace inventories and allocations together",
        "Gives the named providers exactly these inventories and the named consumers exactly these "
        "allocations, as one change. So inventory moves together with what consumers hold of it.",
        {204: Success("The change is made.")},
        {
            400: _BAD,
            409: f"{_NO_ROOM} Or a generation of a provider is another, or an inventory is in use.",
        },
        body=JsonBody(
            "Reshape",
            "The inventories of providers and the allocations of consumers.",
            schemas.RESHAPE,
            ByVersion(
                (
                    "1.30",
                    {
                        "inventories": _NEW_INVENTORIES,
                        "allocations": {_CONSUMER: _WITH_GENERATION},
                    },
                ),
                (
                    "1.34",
                    {"inventories": _NEW_INVENTORIES, "allocations": {_CONSUMER: _WITH_MAPPINGS}},
                ),
                (
                    "1.38",
                    {"inventories": _NEW_INVENTORIES, "allocations": {_CONSUMER: _WITH_TYPE}},
                ),
            ),
        ),
    ),
}
