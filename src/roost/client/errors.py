"""The errors of the client. Those that Nova's report client has as well have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roost.model.errors import OperatorError
from roost.model.text import with_next

if TYPE_CHECKING:
    from roost.client.ledger.explanations import QueryExplanation


class PlacementError(OperatorError):
    """Base of all errors; has the request, and the server's status, code, detail and request id."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        detail: str | None = None,
        request_id: str | None = None,
        provider_uuid: str | None = None,
        code: str | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.detail = detail
        self.request_id = request_id
        self.provider_uuid = provider_uuid
        self.code = code
        self.next_command: str | None = None
        """The command that an operator may type next."""
        super().__init__(message)

    def __str__(self) -> str:
        text = self.message
        if self.status is not None:
            text += f" (HTTP {self.status})"
        if self.detail:
            # The reference puts line breaks and runs of spaces into its sentences.
            text += f": {' '.join(self.detail.split())}"
        if self.request_id:
            text += f" [{self.request_id}]"
        return text if self.next_command is None else with_next(text, self.next_command)


class TransportFailed(PlacementError):
    """No answer came; `roost.client.outcome` tells what is known of the request."""


class PlacementAPIConnectFailure(TransportFailed):
    """No connection could be made: nothing was sent."""


class AnswerLost(TransportFailed):
    """The request was sent, and no whole answer came back in time."""


class AnswerRefused(AnswerLost):
    """The client does not take an answer: it is too large, does not end, or is encoded."""


class ReadLost(AnswerLost):
    """No answer came to a read, which changes nothing on the server."""


class WriteLost(AnswerLost):
    """No answer came to a write: the server may have carried it out."""


class UnreadableAnswer(PlacementError):
    """The answer does not come from a placement server."""


class NotConfigured(PlacementError):
    """The configuration of the client is missing or wrong, for instance the server's address."""


class RecordsInUse(PlacementError):
    """Another process holds the ownership records of this owner."""


class RecordsOfAnotherServer(NotConfigured):
    """An ownership record belongs to another server than the one that its owner reports to."""


class RecordsUnavailable(PlacementError):
    """Ownership records cannot be read or saved at present; the disk may be full."""


class DriverFailed(PlacementError):
    """The code of a driver raised an unexpected error, or did not declare its host."""


class SuddenLoss(PlacementError):
    """A driver finds less than half of what it found before, so nothing is reported."""


class ResourceProviderRetrievalFailed(PlacementError):
    """A provider, its tree or its sharing providers could not be read."""


class NoSuchProvider(ResourceProviderRetrievalFailed):
    """No provider, or no single one, has the name or uuid that the caller gave."""


class ResourceProviderAggregateRetrievalFailed(ResourceProviderRetrievalFailed):
    """The aggregates of a provider could not be read."""


class ResourceProviderTraitRetrievalFailed(ResourceProviderRetrievalFailed):
    """The traits of a provider could not be read."""


class ResourceProviderCreationFailed(PlacementError):
    """A provider could not be created, for instance because its name is taken."""


class ProviderExists(ResourceProviderCreationFailed):
    """A provider of this uuid exists already."""


class ResourceProviderUpdateFailed(PlacementError):
    """The server refused new inventories, aggregates or traits of a provider."""


class ResourceProviderUpdateConflict(PlacementError):
    """Another writer changed the provider meanwhile: read it again, then write."""


class ResourceProviderDeletionFailed(PlacementError):
    """The server refused to delete a provider."""


class ResourceProviderInUse(ResourceProviderDeletionFailed):
    """A provider with allocations or children cannot be deleted."""


class InventoryInUse(PlacementError):
    """Inventory with allocations cannot be removed."""


class InvalidResourceClass(PlacementError):
    """The server neither knows nor creates a resource class."""


class NameInUse(PlacementError):
    """A trait or resource class that providers have cannot be deleted."""


class TraitRetrievalFailed(PlacementError):
    """The traits that the server knows could not be read."""


class TraitCreationFailed(PlacementError):
    """The server neither knows nor creates a trait."""


class ResourceProviderSyncFailed(PlacementError):
    """A flush ended half way. The next report reads the tree again, and repairs it."""


class DeclarationRefused(PlacementError):
    """A declaration contradicts the tree on the server, and cannot be made true."""


class ReshapeNeeded(Exception):
    """A driver raises this if its change would move inventory that is in use.

    The reporter then calls the driver again with the allocations, and the driver moves them.
    """


class ReshapeFailed(PlacementError):
    """A reshape failed; if the server refused, the driver's tree and allocations do not match."""


class PlacementReshapeConflict(PlacementError):
    """Another writer changed a provider or a consumer of the reshape: read again, then reshape."""


class AllocationUpdateFailed(PlacementError):
    """Allocations of a consumer could not be written."""


class ClaimRefused(AllocationUpdateFailed):
    """The server refused a claim, and it was not made.

    `resource_class` and `provider_uuid` say what is short, if the server's sentence names it.
    """

    resource_class: str | None = None


class AlreadyAllocated(AllocationUpdateFailed):
    """A consumer holds something else than it claims; nothing was claimed.

    `held` is what the consumer holds, by provider and resource class.
    """

    held: Mapping[str, Mapping[str, int]] | None = None


class NothingFits(AllocationUpdateFailed):
    """No provider has room for a query; nothing was claimed.

    `why` explains it. Only Roost tells it, so it may be `None`.
    """

    why: QueryExplanation | None = None


class NoSuchConsumer(AllocationUpdateFailed):
    """A consumer holds nothing, so there is nothing to move."""


class AllocationMoveFailed(PlacementError):
    """Allocations could not be moved from one consumer to another."""


class AllocationDeleteFailed(PlacementError):
    """Allocations of a consumer could not be deleted."""


class CursorExpired(PlacementError):
    """The server no longer knows the changes since a cursor: read everything again."""


class QuestionRefused(PlacementError):
    """The server did not answer a question about candidates, for instance for a misspelt name."""


class ChangeFailed(PlacementError):
    """The server did not make a change under `/roost/`; with a status of 5xx it may have."""


class NotOffered(PlacementError):
    """The server lacks the route of this path: it is not Roost, or an older Roost."""

    def __init__(self, message: str, path: str) -> None:
        self.path = path
        super().__init__(message)

    def advising(self, command: str) -> NotOffered:
        """The same error for an operator, with the command that helps on any server."""
        text = f"This server is no Roost server, or an older one: it does not offer {self.path}."
        return NotOffered(with_next(text, command), self.path)
