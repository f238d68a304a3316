"""The server of a ledger: what providers and consumers are read and written with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from roost.client.claims.allocation_writer import AllocationWriter, Retries
from roost.client.ledger.query import AnyQuery, QueryPairs, pairs_in
from roost.client.ledger.values import AnyProvider
from roost.client.questions import Questions
from roost.client.reading.cloud_reader import CloudReader
from roost.client.reading.lookup import find_provider, find_uuid, with_uuids
from roost.client.transport import Transport


class LedgerServer:
    """A placement server, with the reader and the writer of its ledger."""

    def __init__(self, transport: Transport, sleep: Callable[[float], None]) -> None:
        self._server = Questions(transport)
        self._reader = CloudReader(self._server)
        self._sleep = sleep
        self._retries = Retries(sleep, random.uniform)
        self._writer = AllocationWriter(self._server, self._retries)

    def _uuid(self, provider: AnyProvider) -> str:
        """The uuid of a provider that the caller names; `NoSuchProvider` if there is none."""
        return find_uuid(self._server, provider) if isinstance(provider, str) else provider.uuid

    def _root(self, provider: AnyProvider) -> str:
        """The uuid of the root of the tree of a provider."""
        named = provider if isinstance(provider, str) else provider.uuid
        root: str = find_provider(self._server, named)["root_provider_uuid"]
        return root

    def _pairs(self, query: AnyQuery) -> QueryPairs:
        """The parameters of a query, with uuids in place of the names of providers."""
        return with_uuids(self._server, pairs_in(query))

    def _by_uuid(
        self, allocations: Mapping[str, Mapping[str, int]]
    ) -> dict[str, Mapping[str, int]]:
        """Amounts by the uuid of the provider, out of amounts by its name or uuid."""
        found: dict[str, Mapping[str, int]] = {}
        for name, amounts in allocations.items():
            uuid = self._uuid(name)
            if uuid in found:
                raise ValueError(
                    f"the provider {uuid} has two names in these allocations: write its amounts "
                    "under one of them"
                )
            found[uuid] = amounts
        return found
