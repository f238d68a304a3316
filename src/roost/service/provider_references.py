"""Providers as clients of `/roost/` name them: by uuid or by name."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from roost.model.identifiers import is_uuid
from roost.model.providers import Provider
from roost.service.errors import ErrorCode, NotFound
from roost.store import providers


def resolve_provider(connection: Connection, reference: str) -> Provider:
    """The provider with this uuid or name. A uuid that is also a name means the uuid."""
    found = providers.find_provider(connection, reference) if is_uuid(reference) else None
    found = found or providers.find_provider_by_name(connection, reference)
    if found is None:
        raise no_such_provider(reference)
    return found


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
