"""Domain errors, and the error codes that clients match on. A published code never changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class ErrorCode(StrEnum):
    """Every `code` that an error body can carry (from microversion 1.23 on)."""

    UNDEFINED = "placement.undefined_code"
    INVENTORY_IN_USE = "placement.inventory.inuse"
    CONCURRENT_UPDATE = "placement.concurrent_update"
    DUPLICATE_NAME = "placement.duplicate_name"
    PROVIDER_IN_USE = "placement.resource_provider.inuse"
    PROVIDER_CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
    PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
    QUERY_DUPLICATE_KEY = "placement.query.duplicate_key"
    QUERY_BAD_VALUE = "placement.query.bad_value"
    QUERY_MISSING_VALUE = "placement.query.missing_value"
    NO_SUCH_PROVIDER = "roost.no_such_provider"
    NO_SUCH_CONSUMER = "roost.no_such_consumer"
    UUID_TAKEN = "roost.uuid_taken"
    NO_ROOM = "roost.no_room"
    OWNED_BY_ANOTHER = "roost.owned_by_another"
    TOO_MANY_ORPHANS = "roost.too_many_orphans"
    CURSOR_EXPIRED = "roost.cursor_expired"


class ConflictCause(StrEnum):
    """Why a request conflicts with the present state, for operators."""

    CAPACITY = "capacity"
    AMOUNT = "amount"
    """The inventory allows no allocation of this amount, however empty it is."""
    NO_INVENTORY = "no_inventory"
    CONSUMER_GENERATION = "consumer_generation"
    PROVIDER_GENERATION = "provider_generation"
    IN_USE = "in_use"
    EXISTS = "exists"
    CONTENTION = "contention"
    """Each attempt at the write conflicted with another write."""
    OTHER = "other"


class DomainError(Exception):
    """A request that the service refuses; the client reads the message."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.UNDEFINED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@contextmanager
def naming_place(place: str) -> Iterator[None]:
    """Let every refusal inside begin with a place in the request, such as `ask[0]`."""
    try:
        yield
    except DomainError as error:
        error.message = f"{place}: {error.message}"
        raise


class NotFound(DomainError):
    """The subject of the request does not exist."""


class Invalid(DomainError):
    """The request breaks a rule, or names something that does not exist."""


class Conflict(DomainError):
    """The request conflicts with the present state; the same request may succeed later."""

    def __init__(
        self,
        message: str,
        code: ErrorCode = ErrorCode.UNDEFINED,
        cause: ConflictCause = ConflictCause.OTHER,
    ) -> None:
        super().__init__(message, code)
        self.cause = cause


class UnknownResourceClass(Invalid):
    """A request names a resource class that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No such resource class {name}.")


def provider_not_found(uuid: str) -> NotFound:
    """The error for a missing provider; clients match on its sentence."""
    return NotFound(f"No resource provider with uuid {uuid} found")


def generation_conflict() -> Conflict:
    """The error for traits or aggregates of a provider that another request has changed."""
    return Conflict(
        "Resource provider's generation already changed. Please update the generation and try "
        "again.",
        ErrorCode.CONCURRENT_UPDATE,
        ConflictCause.PROVIDER_GENERATION,
    )
