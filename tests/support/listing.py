"""Lists as tests want them: whole."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.model.providers import Provider, ProviderFilter
from roost.service.provider_list import list_providers

_MANY = 1_000_000


def all_providers(connection: Connection, wanted: ProviderFilter) -> list[Provider]:
    """The providers for which every part of the filter holds."""
    found, _ = list_providers(connection, wanted, _MANY)
    return found
