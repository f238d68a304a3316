"""The query string of `GET /resource_providers`."""

from __future__ import annotations

from roost.api.errors import OverLimit
from roost.api.microversions import Microversion
from roost.api.query_values import parse_member_of, parse_required, parse_resources
from roost.api.schemas import providers as schemas
from roost.api.validation import check_query
from roost.model.providers import ProviderFilter, TraitFilter

_CLASSES_MAX = 200


def parse_provider_query(pairs: list[tuple[str, str]], version: Microversion) -> ProviderFilter:
    """The filters in these pairs; 400 with the reason if they are no valid query."""
    values = check_query(pairs, schemas.LIST.at(version))
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
