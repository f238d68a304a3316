"""Listing resource providers by what they are, have and belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import Connection

from roost.model.providers import Provider, ProviderFilter
from roost.service.errors import Invalid
from roost.store import aggregates, provider_search, providers, vocabulary
from roost.store.provider_search import Condition, Extent

# The conditions of one part of the filter; none at all if nobody can pass it.
Part: TypeAlias = list[Condition]


# What a provider has to fulfil to be listed; `None` if no provider can.
Conditions: TypeAlias = tuple[Condition, ...] | None


def list_providers(
    connection: Connection, wanted: ProviderFilter, at_most: int
) -> tuple[list[Provider], Conditions]:
    """The first of the providers for which every part of the filter holds, and its conditions.

    Unknown traits and classes are errors, unless a part before them is one that nobody in the
    whole cloud passes: the reference gives up there, and so does this.
    """
    identity = _identity(connection, wanted)
    if identity is None:
        return [], None
    parts: list[Part] = []
    for conditions_of in (_required_traits, _forbidden_traits, _aggregates, _resources):
        part = conditions_of(connection, wanted, parts)
        if part is None:
            return [], None
        parts.append(part)
    conditions = tuple(condition for part in (identity, *parts) for condition in part)
    return provider_search.find_providers(connection, conditions, at_most), conditions


def measure_list(connection: Connection, conditions: Conditions) -> Extent:
    """Where the providers of a list lie."""
    if conditions is None:
        return Extent(0, 0, None)
    return provider_search.find_extent(connection, conditions)


def list_range(
    connection: Connection, conditions: Conditions, after_id: int, up_to_id: int
) -> list[Provider]:
    """The providers of a list whose ids lie in a range."""
    if conditions is None:
        return []
    return provider_search.find_in_range(connection, conditions, after_id, up_to_id)


def _identity(connection: Connection, wanted: ProviderFilter) -> Part | None:
    conditions = []
    if wanted.name:
        conditions.append(provider_search.has_name(wanted.name))
    if wanted.uuid:
        conditions.append(provider_search.has_uuid(wanted.uuid))
    if wanted.in_tree:
        member = providers.find_provider(connection, wanted.in_tree)
        if member is None:
            return None
        conditions.append(provider_search.in_tree(member.root_id))
    return conditions


def _required_traits(
    connection: Connection, wanted: ProviderFilter, before: Sequence[Part]
) -> Part | None:
    alternatives = wanted.traits.any_of
    names = (*wanted.traits.required, *(name for group in alternatives for name in group))
    ids = _trait_ids(connection, names, before)
    if ids is None:
        return None
    conditions = [
        provider_search.has_any_trait([ids[name] for name in group]) for group in alternatives
    ]
    if wanted.traits.required:
        required = {ids[name] for name in wanted.traits.required}
        conditions.append(provider_search.has_all_traits(required))
    return conditions


def _forbidden_traits(
    connection: Connection, wanted: ProviderFilter, before: Sequence[Part]
) -> Part | None:
    if not wanted.traits.forbidden:
        return []
    ids = _trait_ids(connection, wanted.traits.forbidden, before)
    return None if ids is None else [~provider_search.has_any_trait(ids.values())]


def _trait_ids(
    connection: Connection, names: Sequence[str], before: Sequence[Part]
) -> dict[str, int] | None:
    """The ids of traits that must exist; none if nobody is left to ask them of."""
    ids = vocabulary.trait_ids(connection, names)
    unknown = next((name for name in names if name not in ids), None)
    if unknown is None:
        return ids
    if _nobody_passes(connection, before):
        return None
    raise Invalid(f'Invalid trait(s) in "required" parameter: No such trait(s): {unknown}.')


def _aggregates(
    connection: Connection, wanted: ProviderFilter, _before: Sequence[Part]
) -> Part | None:
    groups = (*wanted.aggregates.any_of, wanted.aggregates.forbidden)
    known = aggregates.aggregate_ids(connection, {uuid for group in groups for uuid in group})
    conditions = [
        provider_search.in_any_aggregate(_ids(known, group)) for group in wanted.aggregates.any_of
    ]
    forbidden = _ids(known, wanted.aggregates.forbidden)
    if forbidden:
        conditions.append(~provider_search.in_any_aggregate(forbidden))
    return conditions


def _ids(known: Mapping[str, list[int]], uuids: Iterable[str]) -> list[int]:
    return [id_ for uuid in uuids for id_ in known.get(uuid, ())]


def _resources(
    connection: Connection, wanted: ProviderFilter, before: Sequence[Part]
) -> Part | None:
    class_ids = vocabulary.resource_class_ids(connection, wanted.resources)
    unknown = next((name for name in wanted.resources if name not in class_ids), None)
    if unknown is not None:
        if _nobody_passes(connection, before):
            return None
        raise Invalid(
            f"Invalid resource class in resources parameter: No such resource class {unknown}."
        )
    return [
        provider_search.has_room(class_ids[name], amount)
        for name, amount in wanted.resources.items()
    ]


def _nobody_passes(connection: Connection, parts: Sequence[Part]) -> bool:
    return any(part and not provider_search.any_provider(connection, part) for part in parts)
