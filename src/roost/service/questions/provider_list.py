"""Listing resource providers: the forest selects them, the store reads their rows.

Clients of `/roost/` name a provider by uuid or by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.providers import Provider, ProviderFilter
from roost.search.conditions.requirement import find_provider_ids
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IntColumn
from roost.search.forest.vocabulary import Vocabulary
from roost.service.errors import ErrorCode, Invalid, NotFound
from roost.store.rows import provider_lists, providers
from roost.store.rows.provider_lists import Extent, IdentityConditions

_NO_IDS: IntColumn = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ProviderSelection:
    """Which providers a list has."""

    identity: IdentityConditions
    # The sorted ids of the selected providers; `None`: all providers with the identity.
    ids: IntColumn | None


def list_providers(
    connection: Connection, forest: Forest | None, wanted: ProviderFilter, at_most: int
) -> tuple[list[Provider] | None, ProviderSelection]:
    """The providers that pass the filter, and how to read them page by page.

    The providers are `None` if there are more than `at_most`. A filter with conditions needs a
    forest. A provider that is deleted after the forest was read is not in the list.
    """
    ids = None if forest is None else _selected_ids(connection, forest, wanted)
    selection = ProviderSelection(wanted.identity, ids)
    if ids is not None:
        is_long = len(ids) > at_most
        return None if is_long else _read(connection, ids), selection
    found = provider_lists.find_first(connection, selection.identity, at_most + 1)
    return None if len(found) > at_most else found, selection


def measure_list(connection: Connection, selection: ProviderSelection) -> Extent:
    """The extent of a list that is read page by page."""
    ids = selection.ids
    if ids is None:
        return provider_lists.find_extent(connection, selection.identity)
    modified_at = provider_lists.find_newest(connection, ids.tolist())
    return Extent(int(ids[0]), int(ids[-1]), modified_at)


def list_range(
    connection: Connection, selection: ProviderSelection, after_id: int, up_to_id: int
) -> list[Provider]:
    """The providers of a list whose ids lie in a range."""
    ids = selection.ids
    if ids is None:
        return provider_lists.find_in_range(connection, selection.identity, after_id, up_to_id)
    first, last = np.searchsorted(ids, (after_id, up_to_id), side="right")
    return _read(connection, ids[first:last])


def _read(connection: Connection, ids: IntColumn) -> list[Provider]:
    return provider_lists.find_by_ids(connection, ids.tolist())


def _selected_ids(connection: Connection, forest: Forest, wanted: ProviderFilter) -> IntColumn:
    """The sorted ids of the providers that pass the filter.

    An unknown trait or class is an error, unless no provider passes an earlier part of the filter.
    The reference stops at such a part and answers with an empty list.
    """
    if wanted.in_tree and providers.find_provider(connection, wanted.in_tree) is None:
        return _NO_IDS
    if not _names_are_known(forest, wanted):
        return _NO_IDS
    ids = find_provider_ids(forest, wanted)
    if wanted.identity:
        identified = provider_lists.find_ids(connection, wanted.identity)
        ids = np.intersect1d(ids, identified, assume_unique=True)
    return ids


def _names_are_known(forest: Forest, wanted: ProviderFilter) -> bool:
    """Raise `Invalid` for the first unknown name; false if an earlier part ends the list."""
    if _unknown_name(forest.vocabulary, wanted) is None:
        return True
    parts = _parts(wanted)
    for index, part in enumerate(parts):
        problem = _unknown_name(forest.vocabulary, part)
        if problem is not None:
            if any(_is_passed_by_none(forest, earlier) for earlier in parts[:index]):
                return False
            raise Invalid(problem)
    raise AssertionError("the parts have all names of the filter")


def _parts(wanted: ProviderFilter) -> Sequence[ProviderFilter]:
    """The conditions one by one, in the order in which the reference looks at them."""
    forbidden = replace(wanted.traits, required=(), any_of=())
    return (
        ProviderFilter(traits=replace(wanted.traits, forbidden=())),
        ProviderFilter(traits=forbidden),
        ProviderFilter(aggregates=wanted.aggregates),
        ProviderFilter(resources=wanted.resources),
    )


def _unknown_name(vocabulary: Vocabulary, part: ProviderFilter) -> str | None:
    """The error for the first name that does not exist; `None` if all names exist."""
    for name in part.traits.names:
        if name not in vocabulary.trait_ids:
            return f'Invalid trait(s) in "required" parameter: No such trait(s): {name}.'
    for name in part.resources:
        if name not in vocabulary.class_ids:
            return f"Invalid resource class in resources parameter: No such resource class {name}."
    return None


def _is_passed_by_none(forest: Forest, part: ProviderFilter) -> bool:
    # Forbidden aggregates exclude no provider of an empty cloud.
    excludes_only = part.aggregates.forbidden and not part.aggregates.any_of
    if not part.has_conditions or (excludes_only and not forest.blocks):
        return False
    return not len(find_provider_ids(forest, part))


def resolve_provider(connection: Connection, reference: str) -> Provider:
    """The provider with this uuid or name. A uuid that is also a name means the uuid."""
    found = find_referenced(connection, reference)
    if found is None:
        raise no_such_provider(reference)
    return found


def find_referenced(connection: Connection, reference: str) -> Provider | None:
    """Like `resolve_provider`; `None` if there is no such provider."""
    found = None
    if is_uuid(reference):
        uuid = canonical_uuid(reference)
        found = providers.find_provider(connection, reference) or (
            providers.find_provider(connection, uuid) if uuid != reference else None
        )
    return found or providers.find_provider_by_name(connection, reference)


def no_such_provider(reference: str) -> NotFound:
    """The error for a provider that no uuid and no name leads to."""
    return NotFound(
        f"No provider has the uuid or name {reference[:200]!r}. "
        "`roost provider list` lists those that exist.",
        ErrorCode.NO_SUCH_PROVIDER,
    )


def names_of_providers(connection: Connection, uuids: Iterable[str]) -> dict[str, str]:
    """The name of each provider that exists, by uuid."""
    return providers.find_names(connection, uuids)
