"""The calls that the client makes, one method each: path, microversion and how each can fail.

Each call has the oldest microversion that serves its purpose, so that the client works with old
servers as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from roost.client.errors import (
    AnswerLost,
    InvalidResourceClass,
    InventoryInUse,
    NameInUse,
    PlacementError,
    PlacementReshapeConflict,
    ProviderExists,
    ReadLost,
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
    WriteLost,
)
from roost.client.placement import answers
from roost.client.placement.answers import (
    INVENTORY_IN_USE,
    NAME_TAKEN,
    UNKNOWN_TRAIT_ADVICE,
    AmountsByClass,
    Inventories,
    ProviderBody,
    is_concurrent_update,
    refusal,
    require_ok,
    require_updated,
)
from roost.client.provider_tree import SHARING_TRAIT
from roost.client.shapes import AMOUNTS, CONSUMER
from roost.client.transport import (
    PlacementRequest,
    PlacementResponse,
    ServerAddress,
    Transport,
    address_of,
)
from roost.client.versions import ServerVersion, newest_common
from roost.model.identifiers import is_custom

GATEWAY_FAILURES = (502, 504)
"""The statuses of a gateway that got no answer from the server."""

MOVING_VERSION = "1.37"
"""The first version that gives a provider another parent."""

_REPLACED_SINCE = {"inventories": "1.26", "aggregates": "1.19", "traits": "1.6"}
"""The version that replaces what a provider has, by its kind."""

NAMES_PER_REQUEST = 100
"""Keeps a path with an `in:` list shorter than servers and proxies allow."""


class Placement:
    """A placement server."""

    def __init__(self, transport: Transport, aggregates_per_request: int = 200) -> None:
        self._transport = transport
        self._aggregates_per_request = aggregates_per_request

    @property
    def transport(self) -> Transport:
        """What sends the requests."""
        return self._transport

    @cached_property
    def version(self) -> ServerVersion:
        """The newest version that the client and the server both speak."""
        return newest_common(self._transport)

    # -- providers

    def tree(self, uuid: str) -> list[ProviderBody]:
        """All providers of the tree of a provider; none if the provider does not exist."""
        answer = self._read(f"/resource_providers?in_tree={quote(uuid)}", "1.14", uuid)
        return answers.provider_bodies(answer)

    def provider(self, uuid: str) -> ProviderBody | None:
        """One provider; `None` if it does not exist."""
        answer = self._send("GET", f"/resource_providers/{uuid}", version="1.14")
        if answer.status == 404:
            return None
        require_ok(answer, ResourceProviderRetrievalFailed, f"Cannot read provider {uuid}", uuid)
        return answers.provider_body(answer, answer.json)

    def providers_named(self, name: str) -> list[ProviderBody]:
        """The provider of this name, in a list; an empty list if there is none."""
        query = urlencode({"name": name})
        answer = self._read(f"/resource_providers?{query}", "1.14", None)
        return answers.provider_bodies(answer)

    def providers(self) -> list[ProviderBody]:
        """All providers."""
        return answers.provider_bodies(self._read("/resource_providers", "1.14", None))

    def roots(self) -> list[ProviderBody]:
        """All providers without parent."""
        return [
            provider for provider in self.providers() if provider["parent_provider_uuid"] is None
        ]

    def sharing_providers(self, aggregates: Iterable[str]) -> list[ProviderBody]:
        """The sharing providers in these aggregates."""
        found: dict[str, ProviderBody] = {}
        for chunk in _chunks(sorted(aggregates), self._aggregates_per_request):
            path = f"/resource_providers?member_of=in:{','.join(chunk)}&required={SHARING_TRAIT}"
            answer = self._read(path, "1.18", None)
            found |= {provider["uuid"]: provider for provider in answers.provider_bodies(answer)}
        return list(found.values())

    def create_provider(self, uuid: str, name: str, parent_uuid: str | None) -> ProviderBody:
        """Create a provider; raises `ProviderExists` if the server has this uuid already.

        The transport may repeat the request: a repetition finds the provider.
        """
        body = {"uuid": uuid, "name": name}
        if parent_uuid is not None:
            body["parent_provider_uuid"] = parent_uuid
        answer = self._send("POST", "/resource_providers", body, "1.20", repeatable=True)
        message = f"Cannot create provider {name} ({uuid})"
        if answer.status == 409 and self._is_known(uuid, answer):
            raise refusal(ProviderExists, message, answer, uuid)
        require_ok(answer, ResourceProviderCreationFailed, message, uuid)
        return answers.provider_body(answer, answer.json)

    def move_provider(self, uuid: str, name: str, parent_uuid: str) -> None:
        """Put a provider of this name, with all below it, below another parent."""
        body = {"name": name, "parent_provider_uuid": parent_uuid}
        path = f"/resource_providers/{uuid}"
        answer = self._send("PUT", path, body, MOVING_VERSION, repeatable=True)
        if answer.status == 404:
            raise refusal(ResourceProviderUpdateConflict, f"Provider {uuid} is gone", answer, uuid)
        require_ok(
            answer, ResourceProviderUpdateFailed, f"Cannot move provider {name} ({uuid})", uuid
        )

    def existing_provider(self, uuid: str) -> ProviderBody | None:
        """The provider of a creation that the server refused; `None` if it does not exist.

        An earlier copy of the request may have made the provider. So the outcome of the creation
        is unknown if the provider cannot be read, and `WriteLost` is raised.
        """
        try:
            return self.provider(uuid)
        except PlacementError as error:
            raise WriteLost(
                f"The server may have created provider {uuid} or not: {error.message}",
                status=error.status,
                detail=error.detail,
                request_id=error.request_id,
                provider_uuid=uuid,
            ) from error

    def _is_known(self, uuid: str, conflict: PlacementResponse) -> bool:
        """Whether a refused creation conflicts with a provider of the same uuid.

        A server may complain about the name first, although an earlier copy of the same request
        made the provider. So the uuid decides, not the sentence.
        """
        return NAME_TAKEN not in conflict.detail or self.existing_provider(uuid) is not None

    def delete_provider(self, uuid: str) -> None:
        """Delete a provider; a provider that does not exist is no error."""
        answer = self._send("DELETE", f"/resource_providers/{uuid}", repeatable=True)
        if answer.status == 404:
            return
        if answer.status == 409:
            raise refusal(ResourceProviderInUse, f"Provider {uuid} is in use", answer, uuid)
        require_ok(answer, ResourceProviderDeletionFailed, f"Cannot delete provider {uuid}", uuid)

    # -- inventories, aggregates, traits

    def inventories(self, uuid: str) -> tuple[int, Inventories]:
        """The generation and the inventories of a provider."""
        answer = self._read(f"/resource_providers/{uuid}/inventories", None, uuid)
        return answers.generation(answer), answers.inventories(answer)

    def aggregates(self, uuid: str) -> tuple[int, frozenset[str]]:
        """The generation and the aggregates of a provider."""
        path = f"/resource_providers/{uuid}/aggregates"
        answer = self._read(path, "1.19", uuid, ResourceProviderAggregateRetrievalFailed)
        return answers.generation(answer), answers.names(answer, "aggregates")

    def traits(self, uuid: str) -> tuple[int, frozenset[str]]:
        """The generation and the traits of a provider."""
        path = f"/resource_providers/{uuid}/traits"
        answer = self._read(path, "1.6", uuid, ResourceProviderTraitRetrievalFailed)
        return answers.generation(answer), answers.names(answer, "traits")

    def replace(
        self, uuid: str, generation: int, kind: str, wanted: Mapping[str, Any] | Iterable[str]
    ) -> tuple[int, Any]:
        """Replace all inventories, aggregates or traits of a provider.

        An empty list is sent with PUT as well, because DELETE returns no generation.
        """
        are_inventories = isinstance(wanted, Mapping)
        sent = wanted if are_inventories else sorted(wanted)
        body = {"resource_provider_generation": generation, kind: sent}
        path = f"/resource_providers/{uuid}/{kind}"
        answer = self._send("PUT", path, body, _REPLACED_SINCE[kind])
        if answer.status == 409 and answer.code == INVENTORY_IN_USE:
            raise refusal(InventoryInUse, f"Inventory of provider {uuid} is in use", answer, uuid)
        require_updated(answer, kind, uuid)
        found = answers.inventories(answer) if are_inventories else answers.names(answer, kind)
        return answers.generation(answer), found

    def usages(self, uuid: str) -> dict[str, int]:
        """The amount in use of each inventory of a provider."""
        answer = self._read(f"/resource_providers/{uuid}/usages", None, uuid)
        return answers.usages(answer)

    # -- names of traits and resource classes

    def known_traits(self, names: Iterable[str]) -> set[str]:
        """The traits among these that the server knows."""
        known: set[str] = set()
        for chunk in _chunks(sorted(names), NAMES_PER_REQUEST):
            path = f"/traits?name=in:{','.join(quote(name) for name in chunk)}"
            answer = self._send("GET", path, version="1.6")
            require_ok(answer, TraitRetrievalFailed, "Cannot read which traits there are")
            known |= answers.names(answer, "traits")
        return known

    def create_trait(self, name: str) -> None:
        """Create a trait, unless the server knows it."""
        answer = self._send("PUT", f"/traits/{quote(name)}", version="1.6", repeatable=True)
        advice = "" if is_custom(name) else f"; {UNKNOWN_TRAIT_ADVICE}"
        require_ok(answer, TraitCreationFailed, f"Cannot create trait {name}{advice}")

    def known_resource_classes(self) -> set[str]:
        """All resource classes that the server knows."""
        answer = self._send("GET", "/resource_classes", version="1.2")
        require_ok(answer, InvalidResourceClass, "Cannot read which resource classes there are")
        return set(answers.class_names(answer))

    def create_resource_class(self, name: str) -> None:
        """Create a resource class, unless the server knows it."""
        path = f"/resource_classes/{quote(name)}"
        answer = self._send("PUT", path, version="1.7", repeatable=True)
        require_ok(answer, InvalidResourceClass, f"Cannot create resource class {name}")

    # -- allocations

    def allocations(self, uuid: str) -> dict[str, AmountsByClass]:
        """What each consumer holds of a provider."""
        answer = self._read(f"/resource_providers/{uuid}/allocations", None, uuid)
        return answers.holdings(answer)

    def allocations_of(self, consumer: str, version: str = "1.28") -> dict[str, Any]:
        """All allocations of a consumer, of any provider, with project, user and generation."""
        answer = self._read(allocations_path(consumer), version, None)
        return dict(answer.shaped(CONSUMER))

    def reshape(
        self, inventories: Mapping[str, Mapping[str, Any]], allocations: Mapping[str, Any]
    ) -> None:
        """Replace inventories and allocations in one step."""
        body = {"inventories": inventories, "allocations": allocations}
        try:
            answer = self._send("POST", "/reshaper", body, "1.30")
        except TransportFailed as error:
            raise ReshapeFailed(
                f"Cannot reshape: {error.message}",
                detail=error.detail,
                request_id=error.request_id,
            ) from error
        if is_concurrent_update(answer):
            raise refusal(PlacementReshapeConflict, "Another writer changed the tree", answer)
        require_ok(answer, ReshapeFailed, "Cannot reshape")

    # -- any request

    def address(self) -> ServerAddress | None:
        """Where the server is; `None` if the transport does not tell."""
        return address_of(self._transport)

    def read_any(self, path: str) -> PlacementResponse:
        """The answer to a GET that not every server knows, whatever its status."""
        return self._send("GET", path)

    def send(self, request: PlacementRequest) -> PlacementResponse:
        """Send a request; raises `ReadLost` or `WriteLost` if no answer of the server came."""
        reads = request.method == "GET"
        try:
            answer = self._transport.send(request)
        except AnswerLost as error:
            lost = ReadLost if reads else WriteLost
            raise lost(error.message, detail=error.detail, request_id=error.request_id) from error
        if answer.status in GATEWAY_FAILURES and not reads:
            raise refusal(WriteLost, f"A gateway lost the answer to {request.shown}", answer)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        version: str | None = None,
        repeatable: bool = False,
    ) -> PlacementResponse:
        return self.send(
            PlacementRequest(method, path, body, version, repeatable or method == "GET")
        )

    def _read(
        self,
        path: str,
        version: str | None,
        uuid: str | None,
        failure: type[PlacementError] = ResourceProviderRetrievalFailed,
    ) -> PlacementResponse:
        answer = self._send("GET", path, version=version)
        require_ok(answer, failure, f"Cannot read {path.partition('?')[0]}", uuid)
        return answer


def allocations_path(consumer_uuid: str) -> str:
    """The path of the allocations of a consumer."""
    return f"/allocations/{quote(consumer_uuid, safe='')}"


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


class Administration(Placement):
    """A placement server as an operator sees it."""

    # -- providers

    def matching_providers(self, query: Sequence[tuple[str, str]]) -> list[ProviderBody]:
        """The providers that match these parameters of GET /resource_providers."""
        path = f"/resource_providers?{urlencode(query)}" if query else "/resource_providers"
        return answers.provider_bodies(self._read(path, str(self.version), None))

    def update_provider(self, uuid: str, name: str, parent_uuid: str | None) -> None:
        """Give a provider a name and a parent; `None` makes it a root."""
        body = {"name": name, "parent_provider_uuid": parent_uuid}
        answer = self._send("PUT", f"/resource_providers/{uuid}", body, str(self.version))
        message = f"Cannot give provider {uuid} this name and parent"
        if answer.status == 409:
            raise refusal(ResourceProviderUpdateConflict, message, answer, uuid)
        require_ok(answer, ResourceProviderUpdateFailed, message, uuid)

    # -- traits and resource classes

    def trait_names(self, *, associated: bool | None = None, beginning: str = "") -> set[str]:
        """All traits; only those that some provider has, or that none has; or by beginning."""
        conditions = {
            "associated": None if associated is None else str(associated).lower(),
            "name": f"startswith:{beginning}" if beginning else None,
        }
        query = urlencode({name: value for name, value in conditions.items() if value}, safe=":")
        answer = self._send("GET", f"/traits?{query}" if query else "/traits", version="1.6")
        require_ok(answer, TraitRetrievalFailed, "Cannot read which traits there are")
        return set(answers.names(answer, "traits"))

    def delete_trait(self, name: str) -> None:
        """Delete a trait, which no provider may have."""
        self._delete_name(f"/traits/{quote(name)}", "1.6", f"trait {name}", TraitRetrievalFailed)

    def delete_resource_class(self, name: str) -> None:
        """Delete a resource class, of which no provider may have inventory."""
        path = f"/resource_classes/{quote(name)}"
        self._delete_name(path, "1.2", f"resource class {name}", InvalidResourceClass)

    def _delete_name(
        self, path: str, version: str, what: str, failure: type[PlacementError]
    ) -> None:
        answer = self._send("DELETE", path, version=version)
        message = f"Cannot delete {what}"
        if answer.status == 409:
            raise refusal(NameInUse, message, answer)
        require_ok(answer, failure, message)

    # -- usages

    def usages_of_project(
        self, project: str, user: str | None = None, version: str | None = None
    ) -> dict[str, Any]:
        """The amounts of each class that a project uses; by type of consumer from 1.38 on."""
        query = urlencode([("project_id", project), *([("user_id", user)] if user else [])])
        answer = self._send("GET", f"/usages?{query}", version=version or str(self.version))
        require_ok(answer, PlacementError, f"Cannot read the usages of project {project}")
        return dict(answer.field("usages", {str: (int, AMOUNTS)}))
