"""The calls that the client makes, one method each: path, microversion and how each can fail.

Each call asks for the oldest microversion that gives what is needed, so that it works with any
placement server that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from roost.client.errors import (
    AnswerLost,
    InvalidResourceClass,
    InventoryInUse,
    PlacementError,
    PlacementReshapeConflict,
    ReshapeFailed,
    ResourceProviderAggregateRetrievalFailed,
    ResourceProviderCreationFailed,
    ResourceProviderDeletionFailed,
    ResourceProviderInUse,
    ResourceProviderRetrievalFailed,
    ResourceProviderTraitRetrievalFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    TraitCreationFailed,
    TraitRetrievalFailed,
    TransportFailed,
    UnreadableAnswer,
    WriteLost,
)
from roost.client.provider_tree import SHARING_TRAIT
from roost.client.transport import Request, Response, Transport
from roost.model.identifiers import is_custom

NAME_TAKEN = "Conflicting resource provider name:"
# A gateway that could not get the answer does not know whether there is one.
GATEWAY_FAILURES = (502, 504)
CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"

# Names of one `in:` list; keeps a request's address well below what servers and proxies take.
NAMES_PER_REQUEST = 100

ProviderBody = Mapping[str, Any]
PROVIDER_FIELDS: Mapping[str, tuple[type, ...]] = {
    "uuid": (str,),
    "name": (str,),
    "generation": (int,),
    "parent_provider_uuid": (str, type(None)),
    "root_provider_uuid": (str,),
}
"""What is asked of a provider, from 1.14 on."""
Inventories = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Associations:
    """What hangs on one provider, as of one generation."""

    generation: int
    inventory: Inventories
    aggregates: frozenset[str]
    traits: frozenset[str]


class ProviderExists(ResourceProviderCreationFailed):
    """A provider of this uuid is there already; not an error for whoever wants it to be there."""


class Placement:
    """A placement server, as the client uses it."""

    def __init__(self, transport: Transport, aggregates_per_request: int = 200) -> None:
        self.transport = transport
        self._aggregates_per_request = aggregates_per_request

    # -- providers

    def tree(self, uuid: str) -> list[ProviderBody]:
        """All providers of the tree that the provider is in; none if there is no such provider."""
        answer = self._read(f"/resource_providers?in_tree={quote(uuid)}", "1.14", uuid)
        return _providers(answer)

    def provider(self, uuid: str) -> ProviderBody | None:
        """One provider, or None."""
        answer = self._send("GET", f"/resource_providers/{uuid}", version="1.14")
        if answer.status == 404:
            return None
        _demand(answer, ResourceProviderRetrievalFailed, f"Cannot read provider {uuid}", uuid)
        return _checked(answer, answer.json)

    def providers_named(self, name: str) -> list[ProviderBody]:
        """The provider of this name, if there is one."""
        query = urlencode({"name": name})
        answer = self._read(f"/resource_providers?{query}", "1.14", None)
        return _providers(answer)

    def roots(self) -> list[ProviderBody]:
        """All providers without parent."""
        answer = self._read("/resource_providers", "1.14", None)
        return [
            provider for provider in _providers(answer) if provider["parent_provider_uuid"] is None
        ]

    def sharing_providers(self, aggregates: Iterable[str]) -> list[ProviderBody]:
        """The providers that share what they have with members of these aggregates."""
        found: dict[str, ProviderBody] = {}
        for chunk in _chunks(sorted(aggregates), self._aggregates_per_request):
            path = f"/resource_providers?member_of=in:{','.join(chunk)}&required={SHARING_TRAIT}"
            answer = self._read(path, "1.18", None)
            found |= {provider["uuid"]: provider for provider in _providers(answer)}
        return list(found.values())

    def create_provider(self, uuid: str, name: str, parent_uuid: str | None) -> ProviderBody:
        """Create a provider. Sent again after a lost answer, it is found to be there already."""
        body = {"uuid": uuid, "name": name}
        if parent_uuid is not None:
            body["parent_provider_uuid"] = parent_uuid
        answer = self._send("POST", "/resource_providers", body, "1.20", repeatable=True)
        message = f"Cannot create provider {name} ({uuid})"
        if answer.status == 409 and NAME_TAKEN not in answer.detail:
            raise _error(ProviderExists, message, answer, uuid)
        _demand(answer, ResourceProviderCreationFailed, message, uuid)
        return _checked(answer, answer.json)

    def delete_provider(self, uuid: str) -> None:
        """Delete a provider; one that is gone already is as good as deleted."""
        answer = self._send("DELETE", f"/resource_providers/{uuid}", repeatable=True)
        if answer.status == 404:
            return
        if answer.status == 409:
            raise _error(ResourceProviderInUse, f"Provider {uuid} is in use", answer, uuid)
        _demand(answer, ResourceProviderDeletionFailed, f"Cannot delete provider {uuid}", uuid)

    # -- what hangs on a provider

    def inventories(self, uuid: str) -> tuple[int, Inventories]:
        """The generation and the inventories of a provider."""
        answer = self._read(f"/resource_providers/{uuid}/inventories", None, uuid)
        return answer.field("resource_provider_generation", int), _inventories(answer)

    def put_inventories(
        self, uuid: str, generation: int, inventories: Mapping[str, Mapping[str, Any]]
    ) -> tuple[int, Inventories]:
        """Replace all inventories of a provider."""
        answer = self._send(
            "PUT",
            f"/resource_providers/{uuid}/inventories",
            {"resource_provider_generation": generation, "inventories": inventories},
            "1.26",
        )
        if answer.status == 409 and answer.code == INVENTORY_IN_USE:
            raise _error(InventoryInUse, f"Inventory of provider {uuid} is in use", answer, uuid)
        _demand_update(answer, "inventories", uuid)
        return answer.field("resource_provider_generation", int), _inventories(answer)

    def aggregates(self, uuid: str) -> tuple[int, frozenset[str]]:
        """The generation and the aggregates of a provider."""
        path = f"/resource_providers/{uuid}/aggregates"
        answer = self._read(path, "1.19", uuid, ResourceProviderAggregateRetrievalFailed)
        return answer.field("resource_provider_generation", int), _names(answer, "aggregates")

    def put_aggregates(
        self, uuid: str, generation: int, aggregates: Iterable[str]
    ) -> tuple[int, frozenset[str]]:
        """Replace all aggregates of a provider."""
        answer = self._send(
            "PUT",
            f"/resource_providers/{uuid}/aggregates",
            {"resource_provider_generation": generation, "aggregates": sorted(aggregates)},
            "1.19",
        )
        _demand_update(answer, "aggregates", uuid)
        return answer.field("resource_provider_generation", int), _names(answer, "aggregates")

    def traits(self, uuid: str) -> tuple[int, frozenset[str]]:
        """The generation and the traits of a provider."""
        path = f"/resource_providers/{uuid}/traits"
        answer = self._read(path, "1.6", uuid, ResourceProviderTraitRetrievalFailed)
        return answer.field("resource_provider_generation", int), _names(answer, "traits")

    def put_traits(
        self, uuid: str, generation: int, traits: Iterable[str]
    ) -> tuple[int, frozenset[str]]:
        """Replace all traits of a provider. An empty list, too: DELETE tells no generation."""
        answer = self._send(
            "PUT",
            f"/resource_providers/{uuid}/traits",
            {"resource_provider_generation": generation, "traits": sorted(traits)},
            "1.6",
        )
        _demand_update(answer, "traits", uuid)
        return answer.field("resource_provider_generation", int), _names(answer, "traits")

    def usages(self, uuid: str) -> dict[str, int]:
        """How much of each inventory of a provider is in use."""
        answer = self._read(f"/resource_providers/{uuid}/usages", None, uuid)
        return dict(answer.field("usages", dict))

    # -- the vocabulary

    def known_traits(self, names: Iterable[str]) -> set[str]:
        """Those of these traits that the server knows."""
        known: set[str] = set()
        for chunk in _chunks(sorted(names), NAMES_PER_REQUEST):
            path = f"/traits?name=in:{','.join(quote(name) for name in chunk)}"
            answer = self._send("GET", path, version="1.6")
            _demand(answer, TraitRetrievalFailed, "Cannot ask which traits there are")
            known |= _names(answer, "traits")
        return known

    def create_trait(self, name: str) -> None:
        """Make a trait known; if it is already, nothing happens."""
        answer = self._send("PUT", f"/traits/{quote(name)}", version="1.6", repeatable=True)
        advice = "" if is_custom(name) else ", which the server is too old to know, or is misspelt"
        _demand(answer, TraitCreationFailed, f"Cannot create trait {name}{advice}")

    def known_resource_classes(self) -> set[str]:
        """All resource classes that the server knows."""
        answer = self._send("GET", "/resource_classes", version="1.2")
        _demand(answer, InvalidResourceClass, "Cannot ask which resource classes there are")
        return {found["name"] for found in answer.field("resource_classes")}

    def create_resource_class(self, name: str) -> None:
        """Make a resource class known; if it is already, nothing happens."""
        path = f"/resource_classes/{quote(name)}"
        answer = self._send("PUT", path, version="1.7", repeatable=True)
        _demand(answer, InvalidResourceClass, f"Cannot create resource class {name}")

    # -- allocations

    def consumers_of(self, uuid: str) -> list[str]:
        """The consumers that have allocations of a provider."""
        answer = self._read(f"/resource_providers/{uuid}/allocations", None, uuid)
        return list(answer.field("allocations", dict))

    def allocations_of(self, consumer: str) -> dict[str, Any]:
        """All allocations of a consumer, of any provider, with project, user and generation."""
        answer = self._read(f"/allocations/{consumer}", "1.28", None)
        return dict(answer.json)

    def reshape(
        self, inventories: Mapping[str, Mapping[str, Any]], allocations: Mapping[str, Any]
    ) -> None:
        """Replace inventories and allocations, all of them or none."""
        body = {"inventories": inventories, "allocations": allocations}
        try:
            answer = self._send("POST", "/reshaper", body, "1.30")
        except TransportFailed as error:
            raise ReshapeFailed(
                f"Cannot reshape: {error.message}",
                detail=error.detail,
                request_id=error.request_id,
            ) from error
        if answer.status == 409 and answer.code == CONCURRENT_UPDATE:
            raise _error(PlacementReshapeConflict, "Somebody else changed the tree", answer)
        _demand(answer, ReshapeFailed, "Cannot reshape")

    # -- sending

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        version: str | None = None,
        repeatable: bool = False,
    ) -> Response:
        reads = method == "GET"
        request = Request(method, path, body, version, repeatable or reads)
        try:
            answer = self.transport.send(request)
        except AnswerLost as error:
            if reads:
                raise
            raise WriteLost(
                error.message, detail=error.detail, request_id=error.request_id
            ) from error
        if answer.status in GATEWAY_FAILURES and not reads:
            raise _error(WriteLost, f"A gateway lost the answer to {request}", answer)
        return answer

    def _read(
        self,
        path: str,
        version: str | None,
        uuid: str | None,
        failure: type[PlacementError] = ResourceProviderRetrievalFailed,
    ) -> Response:
        answer = self._send("GET", path, version=version)
        _demand(answer, failure, f"Cannot read {path.partition('?')[0]}", uuid)
        return answer


def _providers(answer: Response) -> list[ProviderBody]:
    return [_checked(answer, body) for body in answer.field("resource_providers", list)]


def _checked(answer: Response, body: Any) -> ProviderBody:
    """A provider with all that will be asked of it; anything else is no answer of a server."""
    if not isinstance(body, dict) or not all(
        isinstance(body.get(name, ...), kinds) for name, kinds in PROVIDER_FIELDS.items()
    ):
        raise _error(UnreadableAnswer, "The server sent a provider that lacks something", answer)
    return body


def _inventories(answer: Response) -> Inventories:
    inventories: Inventories = answer.field("inventories", dict)
    if not all(isinstance(fields, dict) for fields in inventories.values()):
        raise answer.unreadable()
    return inventories


def _names(answer: Response, field: str) -> frozenset[str]:
    names = answer.field(field, list)
    if not all(isinstance(name, str) for name in names):
        raise answer.unreadable()
    return frozenset(names)


def _demand(
    answer: Response, failure: type[PlacementError], message: str, uuid: str | None = None
) -> None:
    if not answer.ok:
        raise _error(failure, message, answer, uuid)


def _demand_update(answer: Response, what: str, uuid: str) -> None:
    message = f"Cannot replace the {what} of provider {uuid}"
    if answer.status == 409:
        raise _error(ResourceProviderUpdateConflict, message, answer, uuid)
    _demand(answer, ResourceProviderUpdateFailed, message, uuid)


def _error(
    kind: type[PlacementError], message: str, answer: Response, uuid: str | None = None
) -> PlacementError:
    if answer.status in (401, 403):
        message += "; see --token, ROOST_TOKEN or the credentials of the cloud"
    return kind(
        message,
        status=answer.status,
        detail=answer.detail,
        request_id=answer.request_id,
        provider_uuid=uuid,
    )


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
