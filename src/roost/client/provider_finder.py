"""Finds many providers with few requests."""

from __future__ import annotations

from roost.client.placement import Placement, ProviderBody

LISTED_FROM = 100
"""From so many providers on, one list of all providers is cheaper than a request for each."""


class ProviderFinder:
    """Finds providers: many of them in one list of all providers, a few by a request each.

    `sought` is the number of providers that the caller looks for.
    """

    def __init__(self, placement: Placement, sought: int) -> None:
        self._placement = placement
        listed = placement.providers() if sought >= LISTED_FROM else None
        self._by_uuid = None if listed is None else {body["uuid"]: body for body in listed}
        self._by_name = None if listed is None else {body["name"]: body for body in listed}

    def with_uuid(self, uuid: str) -> ProviderBody | None:
        """The provider of a uuid; `None` if there is none."""
        if self._by_uuid is None:
            return self._placement.provider(uuid)
        return self._by_uuid.get(uuid)

    def named(self, name: str) -> ProviderBody | None:
        """The provider of a name; `None` if there is none."""
        if self._by_name is None:
            return next(iter(self._placement.providers_named(name)), None)
        return self._by_name.get(name)
