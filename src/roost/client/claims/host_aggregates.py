"""The aggregates of a host's provider, which is found by name."""

from __future__ import annotations

from collections.abc import Callable

from roost.client.claims.retries import RETRIES, Retries
from roost.client.errors import (
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    WriteLost,
)
from roost.client.outcome import finding_out
from roost.client.placement import Placement


class HostAggregates:
    """Edits the aggregates of hosts, again after a conflict or a lost answer."""

    def __init__(self, placement: Placement, retries: Retries) -> None:
        self._placement = placement
        self._retries = retries

    def edit(self, host_name: str, edit: Callable[[frozenset[str]], frozenset[str]]) -> None:
        """Replace the aggregates of a host by the edited ones."""
        uuid = self._provider_named(host_name)
        lost: WriteLost | None = None
        for number in self._retries:
            with finding_out(lost):
                generation, present = self._placement.aggregates(uuid)
            wanted = edit(present)
            if wanted == present:
                return
            try:
                self._placement.put_aggregates(uuid, generation, wanted)
            except (ResourceProviderUpdateConflict, WriteLost) as error:
                # The next try reads the aggregates again, and finds what is left to do.
                if number == RETRIES:
                    raise
                lost = error if isinstance(error, WriteLost) else None
            else:
                return

    def _provider_named(self, name: str) -> str:
        for provider in self._placement.providers_named(name):
            return str(provider["uuid"])
        raise ResourceProviderRetrievalFailed(
            f"there is no provider named {name!r}: give the exact name of the host's provider"
        )
