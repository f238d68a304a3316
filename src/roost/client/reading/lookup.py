"""Finds what an operator names: providers by name or uuid, traits and classes by name."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable

from roost.client.errors import NoSuchProvider, PlacementError
from roost.client.placement import Placement, ProviderBody
from roost.client.placement.placement import Administration
from roost.model.identifiers import canonical_uuid, is_custom_name, is_uuid
from roost.model.text import nearest_names, printable, with_next

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
    # The parameter with an empty name is no condition for some servers.
    folded = name_or_uuid.casefold()
    found = [
        one for one in placement.providers_named(name_or_uuid) if one["name"].casefold() == folded
    ]
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


def with_uuids(
    placement: Placement, pairs: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """The pairs of a query with a uuid in place of each name of a provider."""
    return tuple(
        (key, find_uuid(placement, value))
        if key.startswith(("in_tree", "in_subtree")) and not is_uuid(value)
        else (key, value)
        for key, value in pairs
    )


def provider_argument(body: ProviderBody) -> str:
    """A provider as a word of a command; its uuid if a shell or a terminal spoils its name.

    >>> [provider_argument({"name": name, "uuid": "u"}) for name in ("rack 1", "-x")]
    ["'rack 1'", 'u']
    """
    name = str(body["name"])
    is_plain = name.isprintable() and not name.startswith("-")
    return shlex.quote(name) if is_plain else str(body["uuid"])


def subtree_of(placement: Placement, top: ProviderBody) -> list[ProviderBody]:
    """A provider and all below it, parents first."""
    return parents_first(top, placement.tree(top["uuid"]))


def parents_first(top: ProviderBody, bodies: Iterable[ProviderBody]) -> list[ProviderBody]:
    """A provider, and of these providers all that are below it; parents before their children."""
    children: dict[str | None, list[ProviderBody]] = {}
    for body in bodies:
        children.setdefault(body["parent_provider_uuid"], []).append(body)
    found = [top]
    for body in found:
        found += children.get(body["uuid"], [])
    return found


def demand_custom_names(names: Iterable[str], noun: str) -> None:
    """Raise an error unless all names are well-formed names of custom traits or classes."""
    for name in names:
        if not is_custom_name(name):
            raise NoSuchName(
                with_next(
                    f"{name} is no custom {noun}: its name begins with CUSTOM_, and has only "
                    "upper-case letters, digits and _.",
                    f"roost {'trait' if noun == 'trait' else 'class'} list",
                )
            )


def demand_traits(server: Administration, names: Collection[str]) -> None:
    """Raise an error with the nearest names, unless the server knows all of these traits."""
    unknown = set(names) - server.known_traits(names)
    for name in sorted(unknown):
        demand_known(name, server.trait_names(), "trait", creation("trait", name))


def demand_classes(server: Administration, names: Collection[str]) -> None:
    """Raise an error with the nearest names, unless the server knows all of these classes."""
    known = server.known_resource_classes() if names else set[str]()
    for name in sorted(names):
        demand_known(name, known, "resource class", creation("class", name))


def creation(noun: str, name: str) -> str:
    """The next command after an unknown trait or class: only custom ones can be created."""
    verb = f"create {shlex.quote(name)}" if is_custom_name(name) else "list"
    return f"roost {noun} {verb}"


def demand_known(name: str, known: Iterable[str], noun: str, command: str) -> None:
    """Raise an error with the nearest names, unless the name is known."""
    names = set(known)
    if name not in names:
        raise NoSuchName(
            with_next(f"No {noun} has the name {name}.{did_you_mean(name, names)}", command)
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
    text = f"No provider has the name or uuid {name}.{did_you_mean(name, names)}"
    return NoSuchProvider(with_next(text, "roost provider list"))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the names near this one; nothing if there are none."""
    near = nearest_names(name, known)
    return f" Near it: {', '.join(map(printable, near))}." if near else ""
