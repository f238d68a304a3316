"""Complete lists of the providers in a database."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.model.providers import Provider, ProviderFilter
from roost.search.forest.forest import Forest
from roost.service.questions.provider_list import list_providers
from roost.store.forest.reading import read_forest, read_vocabulary

_MANY = 1_000_000


def all_providers(connection: Connection, wanted: ProviderFilter) -> list[Provider]:
    """The providers that pass the filter."""
    forest = None
    if wanted.has_conditions:
        forest = Forest.of(read_forest(connection), read_vocabulary(connection))
    found, _ = list_providers(connection, forest, wanted, _MANY)
    assert found is not None, "no test makes more providers"
    return found
