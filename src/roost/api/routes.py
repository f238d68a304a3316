"""The route table: every path, method and version, and its policy rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from roost.api.candidates import handler as candidates
from roost.api.extensions import candidates as extended_candidates
from roost.api.extensions import capacity, explain, fragmentation, resilience, server, whatif
from roost.api.extensions.openapi import OpenApiDocuments
from roost.api.handlers import (
    aggregates,
    allocations,
    health,
    inventories,
    metrics,
    providers,
    resource_classes,
    root,
    traits,
    usages,
)
from roost.api.microversions import MAX_VERSION, MIN_VERSION, Microversion
from roost.api.requests import Request
from roost.api.responses import Response
from roost.api.services import Services

Handler: TypeAlias = Callable[[Services, Request], Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    # The policy rule; `None` if the route is open to every client, even without a token.
    rule: str | None
    since: Microversion = MIN_VERSION
    until: Microversion = MAX_VERSION
    # The request must have a JSON body (else 415), or the client must accept one (else 406).
    takes_json: bool = False
    gives_json: bool = False
    # Media types are checked before the version.
    media_first: bool = False
    # The status for a version without this route.
    unknown_status: int = 404
    # The project that the rule is about; the caller's own if this is `None`.
    target_project: Callable[[Request], str | None] | None = None
    # Programs ask it every few seconds: an answer without an error is no line in the log.
    is_probe: bool = False


def _route(
    method: str,
    path: str,
    handler: Handler,
    rule: str,
    *,
    since: int = 0,
    json: bool = True,
    media_first: bool = False,
) -> Route:
    """A usual route: GET answers with JSON, and POST and PUT take JSON, unless `json` is false."""
    return Route(
        method,
        path,
        handler,
        f"placement:{rule}",
        since=Microversion(1, since),
        takes_json=json and method in ("POST", "PUT"),
        gives_json=json and method == "GET",
        media_first=media_first,
    )


def _extension(method: str, path: str, handler: Handler, rule: str) -> Route:
    """A route of ours: the same at every microversion."""
    return Route(
        method,
        f"/roost/{path}",
        handler,
        f"roost:{rule}",
        takes_json=method in ("POST", "PUT"),
        gives_json=method == "GET",
    )


def _show_openapi(_services: Services, request: Request) -> Response:
    """The document of all routes below."""
    return _DOCUMENTS.show(request)


_CLASS = "/resource_classes/{name}"
_PROVIDER = "/resource_providers/{uuid}"
_INVENTORIES = "/resource_providers/{uuid}/inventories"
_INVENTORY = "/resource_providers/{uuid}/inventories/{resource_class}"
_AGGREGATES = "/resource_providers/{uuid}/aggregates"
_PROVIDER_TRAITS = "/resource_providers/{uuid}/traits"
_TRAIT = "/traits/{name}"
_CONSUMER = "/allocations/{consumer}"

# fmt: off
# The order within a path is the order of its `allow` header.
ROUTES: tuple[Route, ...] = (
    Route("GET", "/", root.home, rule=None),
    Route("GET", "", root.home, rule=None),

    Route("GET", "/healthz", health.alive, rule=None, is_probe=True),
    Route("GET", "/readyz", health.ready, rule=None, is_probe=True),
    Route("GET", "/metrics", metrics.scrape, rule=None, is_probe=True),

    _route("GET", "/resource_classes", resource_classes.list_all, "resource_classes:list", since=2),
    _route("POST", "/resource_classes", resource_classes.create, "resource_classes:create",
           since=2),
    _route("GET", _CLASS, resource_classes.show, "resource_classes:show", since=2),
    Route("PUT", _CLASS, resource_classes.rename, "placement:resource_classes:update",
          since=Microversion(1, 2), until=Microversion(1, 6), takes_json=True),
    _route("PUT", _CLASS, resource_classes.ensure, "resource_classes:update", since=7, json=False),
    _route("DELETE", _CLASS, resource_classes.delete, "resource_classes:delete", since=2),

    _route("GET", "/resource_providers", providers.list_all, "resource_providers:list"),
    _route("POST", "/resource_providers", providers.create, "resource_providers:create"),
    _route("GET", _PROVIDER, providers.show, "resource_providers:show"),
    _route("DELETE", _PROVIDER, providers.delete, "resource_providers:delete"),
    _route("PUT", _PROVIDER, providers.update, "resource_providers:update"),

    _route("GET", _INVENTORIES, inventories.list_all, "resource_providers:inventories:list"),
    _route("POST", _INVENTORIES, inventories.create, "resource_providers:inventories:create"),
    _route("PUT", _INVENTORIES, inventories.replace_all, "resource_providers:inventories:update"),
    Route("DELETE", _INVENTORIES, inventories.delete_all,
          "placement:resource_providers:inventories:delete",
          since=Microversion(1, 5), unknown_status=405),
    _route("GET", _INVENTORY, inventories.show, "resource_providers:inventories:show"),
    _route("PUT", _INVENTORY, inventories.replace_one, "resource_providers:inventories:update"),
    _route("DELETE", _INVENTORY, inventories.delete_one,
           "resource_providers:inventories:delete"),

    _route("GET", "/resource_providers/{uuid}/usages", inventories.usages,
           "resource_providers:usages"),
    _route("GET", _AGGREGATES, aggregates.list_all, "resource_providers:aggregates:list",
           since=1, media_first=True),
    _route("PUT", _AGGREGATES, aggregates.replace, "resource_providers:aggregates:update",
           since=1, media_first=True),
    _route("GET", "/resource_providers/{uuid}/allocations", allocations.list_for_provider,
           "resource_providers:allocations:list"),
    _route("GET", _PROVIDER_TRAITS, traits.list_for_provider, "resource_providers:traits:list",
           since=6),
    _route("PUT", _PROVIDER_TRAITS, traits.replace_for_provider,
           "resource_providers:traits:update", since=6),
    _route("DELETE", _PROVIDER_TRAITS, traits.delete_for_provider,
           "resource_providers:traits:delete", since=6),

    _route("GET", "/traits", traits.list_all, "traits:list", since=6),
    _route("GET", _TRAIT, traits.show, "traits:show", since=6, json=False),
    _route("PUT", _TRAIT, traits.ensure, "traits:update", since=6, json=False),
    _route("DELETE", _TRAIT, traits.delete, "traits:delete", since=6),

    _route("POST", "/allocations", allocations.replace_several, "allocations:manage", since=13),
    _route("GET", _CONSUMER, allocations.show, "allocations:list"),
    _route("PUT", _CONSUMER, allocations.replace, "allocations:update"),
    _route("DELETE", _CONSUMER, allocations.delete, "allocations:delete"),

    _route("GET", "/allocation_candidates", candidates.list_all, "allocation_candidates:list",
           since=10),

    Route("GET", "/usages", usages.list_all, "placement:usages", since=Microversion(1, 9),
          gives_json=True, target_project=usages.target_project),
    _route("POST", "/reshaper", allocations.reshape_providers, "reshaper:reshape", since=30),

    _extension("GET", "resilience", resilience.show, "resilience:show"),
    _extension("GET", "server", server.show, "server:show"),
    _extension("GET", "openapi.json", _show_openapi, "openapi:show"),
    _extension("GET", "explain", explain.show, "explain:show"),
    _extension("GET", "capacity", capacity.show, "capacity:show"),
    _extension("GET", "fragmentation", fragmentation.show, "fragmentation:show"),
    _extension("POST", "whatif", whatif.ask, "whatif:ask"),
    _extension("GET", "candidates", extended_candidates.list_all, "candidates:list"),
)
# fmt: on
_DOCUMENTS = OpenApiDocuments(ROUTES)


# Stands for a variable part in a key. No part of a path is a slash.
_VARIABLE = "/"


class Match(NamedTuple):
    """All routes of a path by method, and the variable parts of the path."""

    # The path of the table.
    path: str
    by_method: Mapping[str, Sequence[Route]]
    parameters: dict[str, str]

    @property
    def allow(self) -> str:
        """The methods of the path, in any version."""
        return ", ".join(self.by_method)


class Router:
    """Finds the routes of a path.

    Paths with the same number of parts may have variable parts at several places. Each choice of
    places is a pattern. The fixed parts are the key of a table, so a pattern costs one look there.
    Patterns with fewer variable parts come first: `/a/state` is found before `/a/{name}`.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        # By the number of parts: where the variable parts of each pattern are.
        self._patterns: dict[int, list[tuple[int, ...]]] = {}
        # By the parts, with `_VARIABLE` for each variable part: the names of these, and the routes.
        self._found: dict[tuple[str, ...], tuple[str, tuple[str, ...], dict[str, list[Route]]]] = {}
        for route in routes:
            parts = route.path.split("/")
            where = tuple(index for index, part in enumerate(parts) if part.startswith("{"))
            patterns = self._patterns.setdefault(len(parts), [])
            if where not in patterns:
                patterns.append(where)
                patterns.sort(key=lambda places: (len(places), [-place for place in places]))
            names = tuple(parts[index][1:-1] for index in where)
            path, _, by_method = self._found.setdefault(_key(parts, where), (route.path, names, {}))
            if path != route.path:
                raise ValueError(f"{route.path} has other names than an equal path")
            by_method.setdefault(route.method, []).append(route)

    def find(self, path: str) -> Match | None:
        """The routes of this path; `None` if there is no such path."""
        parts = path.split("/")
        for where in self._patterns.get(len(parts), ()):
            found = self._found.get(_key(parts, where))
            if found is None:
                continue
            values = [parts[index] for index in where]
            if "" not in values:
                template, names, by_method = found
                return Match(template or "/", by_method, dict(zip(names, values, strict=True)))
        return None


def _key(parts: list[str], variable: tuple[int, ...]) -> tuple[str, ...]:
    if not variable:
        return tuple(parts)
    key = parts.copy()
    for index in variable:
        key[index] = _VARIABLE
    return tuple(key)
