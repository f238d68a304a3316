"""The query string of `GET /resource_providers`."""

from __future__ import annotations

from roost.api.errors import OverLimit
from roost.api.json_schemas import EXAMPLE_AGGREGATE, EXAMPLE_PROVIDER, UUID, text
from roost.api.microversions import Microversion
from roost.api.query_values import parse_member_of, parse_required, parse_resources
from roost.api.routing import QueryString, RequestParameter
from roost.api.validation import check_query
from roost.model.providers import ProviderFilter, TraitFilter

_CLASSES_MAX = 200
# Queries take a uuid in its canonical form with dashes only.
_UUID = text(pattern="^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$") | UUID

QUERY = QueryString.of(
    RequestParameter("name", "Only the provider with exactly this name.", "host-1"),
    RequestParameter("uuid", "Only the provider with this uuid.", EXAMPLE_PROVIDER, _UUID),
    RequestParameter(
        "member_of",
        "Only providers in the aggregate. `in:A,B` means at least one of several, and, from "
        "1.32 on, `!A` or `!in:A,B` none of them. Each of several values must hold.",
        f"in:{EXAMPLE_AGGREGATE}",
        since=Microversion(1, 3),
        repeated_since=Microversion(1, 24),
    ),
    RequestParameter(
        "resources",
        "Only providers that have room for all of these amounts.",
        "VCPU:4,MEMORY_MB:8192",
        since=Microversion(1, 4),
    ),
    RequestParameter(
        "in_tree",
        "Only providers in the tree of this provider.",
        EXAMPLE_PROVIDER,
        _UUID,
        since=Microversion(1, 14),
    ),
    RequestParameter(
        "required",
        "Only providers with all of these traits, or, from 1.22 on and after a `!`, without "
        "them. From 1.39 on `in:A,B` means at least one of several.",
        "HW_CPU_X86_AVX2,HW_CPU_X86_VMX",
        since=Microversion(1, 18),
        repeated_since=Microversion(1, 39),
    ),
)


def parse_provider_query(pairs: list[tuple[str, str]], version: Microversion) -> ProviderFilter:
    """The filters in these pairs; 400 with the reason if they are no valid query."""
    values = check_query(pairs, QUERY.schemas.at(version))
    return ProviderFilter(
        name=values.get("name"),
        uuid=values.get("uuid"),
        in_tree=values.get("in_tree"),
        aggregates=parse_member_of(_values(pairs, "member_of"), version),
        traits=_stripped(parse_required(_values(pairs, "required"), version)),
        resources=_resources(values["resources"]) if "resources" in values else {},
    )


def _values(pairs: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for key, value in pairs if key == wanted]


def _resources(value: str) -> dict[str, int]:
    resources = parse_resources(value)
    # The search looks for each class in every block of the forest.
    if len(resources) > _CLASSES_MAX:
        raise OverLimit(
            400,
            f"Invalid query string parameters: 'resources' names {len(resources)} classes; "
            f"{_CLASSES_MAX} are allowed.",
            "names",
        )
    return resources


def _stripped(traits: TraitFilter) -> TraitFilter:
    """The same traits without blanks around the names, not even after a `!`."""
    forbidden = tuple(name.strip() for name in traits.forbidden)
    return TraitFilter(traits.required, traits.any_of, forbidden)
