"""Aggregates and traits of a provider, and all traits."""

from __future__ import annotations

from roost.api.openapi.operation import (
    JsonBody,
    Operation,
    ParameterText,
    QueryString,
    Success,
)
from roost.api.openapi.operations.providers import UNKNOWN_PROVIDER
from roost.api.schemas import associations as schemas
from roost.api.schemas.building import ByVersion
from roost.api.schemas.responses import names as answers

_AGGREGATES = "Aggregates"
_TRAITS = "Traits"
_AGGREGATE = "42896e0d-205d-4fe3-bd1e-100924931787"
_CHANGED = "The generation is not that of the provider: read again."
_UNKNOWN_TRAIT = "No trait has this name."

_LIST = QueryString(
    schemas.LIST_TRAITS,
    {
        "name": ParameterText(
            "`startswith:P`: traits whose names begin so. `in:A,B`: those of the list that exist.",
            "startswith:HW_CPU",
        ),
        "associated": ParameterText(
            "`true`: traits that a provider has. `false`: traits that no provider has.", "true"
        ),
    },
)

OPERATIONS = {
    "GET /resource_providers/{uuid}/aggregates": Operation(
        "list_provider_aggregates",
        _AGGREGATES,
        "List the aggregates of a provider",
        "The aggregates of which the provider is a member.",
        {200: Success("The aggregates.", answers.PROVIDER_AGGREGATES, headers=("cached",))},
        {404: UNKNOWN_PROVIDER},
    ),
    "PUT /resource_providers/{uuid}/aggregates": Operation(
        "replace_provider_aggregates",
        _AGGREGATES,
        "Replace the aggregates of a provider",
        "Replaces all aggregates of the provider. An aggregate exists once a provider names it. "
        "From 1.19 on the generation of the provider must match.",
        {200: Success("The aggregates.", answers.PROVIDER_AGGREGATES, headers=("cached",))},
        {404: UNKNOWN_PROVIDER, 409: _CHANGED},
        body=JsonBody(
            "NewAggregates",
            "The uuids of the aggregates; from 1.19 on also the generation of the provider.",
            schemas.AGGREGATES,
            ByVersion(
                ("1.1", [_AGGREGATE]),
                ("1.19", {"aggregates": [_AGGREGATE], "resource_provider_generation": 3}),
            ),
        ),
    ),
    "GET /resource_providers/{uuid}/traits": Operation(
        "list_provider_traits",
        _TRAITS,
        "List the traits of a provider",
        "The traits that the provider has.",
        {200: Success("The traits.", answers.PROVIDER_TRAITS, headers=("cached",))},
        {404: UNKNOWN_PROVIDER},
    ),
    "PUT /resource_providers/{uuid}/traits": Operation(
        "replace_provider_traits",
        _TRAITS,
        "Replace the traits of a provider",
        "Replaces all traits of the provider.",
        {200: Success("The traits.", answers.PROVIDER_TRAITS, headers=("cached",))},
        {
            400: "The body does not fit the schema, or a trait does not exist.",
            404: UNKNOWN_PROVIDER,
            409: _CHANGED,
        },
        body=JsonBody(
            "NewProviderTraits",
            "The traits, and the generation of the provider.",
            schemas.PROVIDER_TRAITS,
            ByVersion(("1.6", {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 3})),
        ),
    ),
    "DELETE /resource_providers/{uuid}/traits": Operation(
        "delete_provider_traits",
        _TRAITS,
        "Remove all traits of a provider",
        "Removes all traits of the provider. The traits themselves stay.",
        {204: Success("The provider has no traits.")},
        {404: UNKNOWN_PROVIDER, 409: "Another request changed the provider at the same time."},
    ),
    "GET /traits": Operation(
        "list_traits",
        _TRAITS,
        "List traits",
        "The names of all traits that pass the filters, standard and custom.",
        {200: Success("The traits.", answers.TRAITS, headers=("cached",))},
        {400: "A parameter is unknown or malformed."},
        queries=(_LIST,),
    ),
    "GET /traits/{name}": Operation(
        "show_trait",
        _TRAITS,
        "Look whether a trait exists",
        "Answers without a body.",
        {204: Success("The trait exists.", headers=("cached",))},
        {404: _UNKNOWN_TRAIT},
    ),
    "PUT /traits/{name}": Operation(
        "ensure_trait",
        _TRAITS,
        "Create or confirm a trait",
        "Creates a custom trait, unless it exists. The service ignores a body.",
        {
            201: Success("The trait exists now.", headers=("location", "cached")),
            204: Success("The trait existed before.", headers=("location", "cached")),
        },
        {400: "The name is no name of a custom trait."},
    ),
    "DELETE /traits/{name}": Operation(
        "delete_trait",
        _TRAITS,
        "Delete a trait",
        "Deletes a custom trait that no provider has.",
        {204: Success("The trait is gone.")},
        {
            400: "The trait is a standard one.",
            404: _UNKNOWN_TRAIT,
            409: "A provider has the trait.",
        },
    ),
}
