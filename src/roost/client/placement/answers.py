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
from roost.client.transport import PlacementResponse

CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
NAME_TAKEN = "Conflicting resource provider name:"
UNKNOWN_TRAIT_ADVICE = (
    "check its spelling, begin a name of your own with CUSTOM_, or upgrade the server"
)

Inventories = dict[str, dict[str, Any]]
ProviderBody = Mapping[str, Any]
PROVIDER_FIELDS: Mapping[str, tuple[type, ...]] = {
    "uuid": (str,),
    "name": (str,),
    "generation": (int,),
    "parent_provider_uuid": (str, type(None)),
    "root_provider_uuid": (str,),
}
"""The fields of a provider that the client reads, from 1.14 on."""


# -- content


def provider_bodies(answer: PlacementResponse) -> list[ProviderBody]:
    """The providers of a list."""
    return [provider_body(answer, body) for body in answer.field("resource_providers", list)]


def provider_body(answer: PlacementResponse, body: Any) -> ProviderBody:
    """One provider; a body that lacks a field is no answer of a placement server."""
    if not isinstance(body, dict) or not all(
        isinstance(body.get(name, ...), kinds) for name, kinds in PROVIDER_FIELDS.items()
    ):
        raise refusal(UnreadableAnswer, "The server sent a provider that lacks a field", answer)
    return body


def generation(answer: PlacementResponse) -> int:
    """The generation of the provider that the answer is about."""
    value: int = answer.field("resource_provider_generation", int)
    return value


def inventories(answer: PlacementResponse) -> Inventories:
    """The inventories of a provider, by resource class."""
    found: Inventories = answer.field("inventories", dict)
    if not all(isinstance(fields, dict) for fields in found.values()):
        raise answer.unreadable()
    return found


def names(answer: PlacementResponse, field: str) -> frozenset[str]:
    """The names in a list, such as traits."""
    found = answer.field(field, list)
    if not all(isinstance(name, str) for name in found):
        raise answer.unreadable()
    return frozenset(found)


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
