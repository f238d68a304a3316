"""The aggregates of providers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from roost.service.errors import generation_conflict, provider_not_found
from roost.service.tables.providers import get_locked_provider
from roost.store.rows import aggregates
from roost.store.transaction import Finished, Transaction


def list_aggregates(connection: Connection, uuid: str) -> tuple[int, list[str]]:
    """The provider's generation, and the uuids of the aggregates that have the provider."""
    found = aggregates.provider_aggregates(connection, uuid)
    if found is None:
        raise provider_not_found(uuid)
    return found


def replace_aggregates(
    transaction: Transaction, uuid: str, wanted: Sequence[str], generation: int | None
) -> Finished[int]:
    """Make the provider a member of exactly these aggregates; its generation afterwards.

    Without a generation (below 1.19) the use case neither checks nor increments the generation.
    """
    provider = get_locked_provider(transaction, uuid)
    if generation is not None and provider.generation != generation:
        raise generation_conflict()
    ids = aggregates.ensure_aggregates(transaction, wanted)
    aggregates.replace_provider_aggregates(
        transaction,
        provider,
        [found[0] for found in ids.values()],
        moves_generation=generation is not None,
    )
    return transaction.finish(provider.generation if generation is None else generation + 1)
