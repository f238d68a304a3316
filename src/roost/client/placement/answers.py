"""Answers of a placement server: their content, or the error that they stand for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.client.errors import (
    PlacementError,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    UnreadableAnswer,
)
from roost.client.shapes import AMOUNTS, HOLDINGS, INVENTORY, NULL, JsonShape, fits
from roost.client.transport import PlacementResponse

CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
NAME_TAKEN = "Conflicting resource provider name:"
UNKNOWN_TRAIT_ADVICE = (
    "check its spelling, begin a name of your own with CUSTOM_, or upgrade the server"
)

Inventories = dict[str, dict[str, Any]]
ProviderBody = Mapping[str, Any]
AmountsByClass = Mapping[str, int]
PROVIDER_FIELDS: JsonShape = {
    "uuid": str,
    "name": str,
    "generation": int,
    "parent_provider_uuid": (str, NULL),
    "root_provider_uuid": str,
}
"""The fields of a provider that the client reads, from 1.14 on."""


# -- content


def provider_bodies(answer: PlacementResponse) -> list[ProviderBody]:
    """The providers of a list."""
    return [provider_body(answer, body) for body in answer.field("resource_providers", list)]


def provider_body(answer: PlacementResponse, body: Any) -> ProviderBody:
    """One provider; a body that lacks a field is no answer of a placement server."""
    if not fits(body, PROVIDER_FIELDS):
        raise refusal(UnreadableAnswer, "The server sent a provider that lacks a field", answer)
    found: ProviderBody = body
    return found


def generation(answer: PlacementResponse) -> int:
    """The generation of the provider that the answer is about."""
    value: int = answer.field("resource_provider_generation", int)
    return value


def inventories(answer: PlacementResponse) -> Inventories:
    """The inventories of a provider, by resource class."""
    return inventories_in(answer.field("inventories", {str: INVENTORY}))


def inventories_in(found: Inventories) -> Inventories:
    """Inventories with the fields that the client reads."""
    return {name: {field: fields[field] for field in INVENTORY} for name, fields in found.items()}


def names(answer: PlacementResponse, field: str) -> frozenset[str]:
    """The names in a list, such as traits."""
    return frozenset(answer.field(field, [str]))


def class_names(answer: PlacementResponse) -> list[str]:
    """The names in a list of resource classes."""
    return [found["name"] for found in answer.field("resource_classes", [{"name": str}])]


def usages(answer: PlacementResponse) -> dict[str, int]:
    """The amount in use of each class."""
    return dict(answer.field("usages", AMOUNTS))


def holdings(answer: PlacementResponse) -> dict[str, AmountsByClass]:
    """What each consumer holds, or each provider gives, by class."""
    found = answer.field("allocations", HOLDINGS)
    return {uuid: its["resources"] for uuid, its in found.items()}


# -- errors


def is_concurrent_update(answer: PlacementResponse) -> bool:
    """Whether another writer changed a provider or a consumer at the same time."""
    return answer.status == 409 and answer.code == CONCURRENT_UPDATE


def require_ok(
    answer: PlacementResponse, failure: type[PlacementError], message: str, uuid: str | None = None
) -> None:
    """Raise `failure` if the server refused."""
    if answer.status == 401:
        message += "; see --token, ROOST_TOKEN or the credentials of the cloud"
    if answer.status == 403:
        message += "; the token lacks a role for it: use another one, or change the server's policy"
    if not answer.ok:
        raise refusal(failure, message, answer, uuid)


def require_updated(answer: PlacementResponse, what: str, uuid: str) -> None:
    """Raise an error if the server did not replace what a provider has."""
    message = f"Cannot replace the {what} of provider {uuid}"
    if answer.status == 409:
        raise refusal(ResourceProviderUpdateConflict, message, answer, uuid)
    require_ok(answer, ResourceProviderUpdateFailed, message, uuid)


def refusal(
    kind: type[PlacementError], message: str, answer: PlacementResponse, uuid: str | None = None
) -> PlacementError:
    """The error for an answer, with status, detail and request id."""
    return kind(
        message,
        status=answer.status,
        detail=answer.detail,
        request_id=answer.request_id,
        provider_uuid=uuid,
        code=answer.code,
    )


def reason_of(answer: PlacementResponse) -> str:
    """The sentence that says what is wrong; it stands behind a general one."""
    return answer.detail.rpartition("\n\n")[2].strip()
