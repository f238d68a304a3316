"""Finds what an operator names: providers by name or uuid, traits and classes by name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from roost.client.errors import PlacementError, ResourceProviderRetrievalFailed
from roost.client.placement import Placement, ProviderBody
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import nearest_names, with_next


class NoSuchProvider(ResourceProviderRetrievalFailed):
    """No provider, or no single one, has the name or uuid that the operator gave."""


class NoSuchName(PlacementError):
    """The server knows no trait or resource class of this name."""


def find_provider(placement: Placement, name_or_uuid: str) -> ProviderBody:
    """The provider of this uuid or name.

    A uuid counts before a name that looks like a uuid. Some databases find names in either case,
    so the exact name counts before its other spellings.
    """
    if is_uuid(name_or_uuid):
        provider = placement.provider(canonical_uuid(name_or_uuid))
        if provider is not None:
            return provider
    found = placement.providers_named(name_or_uuid)
    chosen = [one for one in found if one["name"] == name_or_uuid] or found
    if len(chosen) > 1:
        raise NoSuchProvider(
            with_next(
                f"{len(chosen)} providers have the name {name_or_uuid}: "
                f"{', '.join(sorted(one['uuid'] for one in chosen))}. Give the uuid.",
                f"roost provider list --name {shlex.quote(name_or_uuid)}",
            )
        )
    if not chosen:
        raise _no_such_provider(placement, name_or_uuid)
    return chosen[0]


def find_uuid(placement: Placement, name_or_uuid: str) -> str:
    """The uuid of the provider of this uuid or name."""
    uuid: str = find_provider(placement, name_or_uuid)["uuid"]
    return uuid


def demand_known(name: str, known: Iterable[str], noun: str, command: str) -> None:
    """Raise an error with the nearest names, unless the name is known."""
    names = set(known)
    if name not in names:
        raise NoSuchName(
            with_next(f"No {noun} has the name {name}.{_did_you_mean(name, names)}", command)
        )


def _no_such_provider(placement: Placement, name: str) -> NoSuchProvider:
    names = [provider["name"] for provider in placement.providers()]
    if not names:
        return NoSuchProvider(
            with_next(
                f"No provider has the name or uuid {name}: the server has no providers yet.",
                "roost agent --driver linux --once",
            )
        )
    text = f"No provider has the name or uuid {name}.{_did_you_mean(name, names)}"
    return NoSuchProvider(with_next(text, "roost provider list"))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f" Near it: {', '.join(near)}." if near else ""
