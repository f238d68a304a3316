"""What can go wrong between a client and a placement server, each with a name to catch.

The names are those under which the developers of compute services know these events.
"""

from __future__ import annotations

from roost.model.errors import OperatorError


class PlacementError(OperatorError):
    """Any of the errors below; says what was asked, what the server said and under which id."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        detail: str | None = None,
        request_id: str | None = None,
        provider_uuid: str | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.detail = detail
        self.request_id = request_id
        self.provider_uuid = provider_uuid
        super().__init__(message)

    def __str__(self) -> str:
        text = self.message
        if self.status is not None:
            text += f" (HTTP {self.status})"
        if self.detail:
            text += f": {self.detail}"
        if self.request_id:
            text += f" [{self.request_id}]"
        return text


class TransportFailed(PlacementError):
    """No answer came; `maybe_done` tells whether the request may have been carried out."""

    maybe_done = True


class PlacementAPIConnectFailure(TransportFailed):
    """No connection could be made: nothing was sent."""

    maybe_done = False


class AnswerLost(TransportFailed):
    """The request went out and no whole answer came back, in time or at all."""


class WriteLost(AnswerLost):
    """Of a write no answer came back: it may have been carried out or not."""


class UnreadableAnswer(PlacementError):
    """What came back is no answer of a placement server."""


class NotConfigured(PlacementError):
    """It is not known, or not usable, where the server is and who is asking."""


class ResourceProviderRetrievalFailed(PlacementError):
    """A provider, its tree or its sharing partners could not be read."""


class ResourceProviderAggregateRetrievalFailed(ResourceProviderRetrievalFailed):
    """The aggregates of a provider could not be read."""


class ResourceProviderTraitRetrievalFailed(ResourceProviderRetrievalFailed):
    """The traits of a provider could not be read."""


class ResourceProviderCreationFailed(PlacementError):
    """A provider could not be created, for instance because its name is taken."""


class ResourceProviderUpdateFailed(PlacementError):
    """The server refused new inventories, aggregates or traits of a provider."""


class ResourceProviderUpdateConflict(PlacementError):
    """Somebody else changed the provider meanwhile: read it again, then write."""


class ResourceProviderDeletionFailed(PlacementError):
    """The server refused to delete a provider."""


class ResourceProviderInUse(ResourceProviderDeletionFailed):
    """A provider with allocations or children cannot be deleted."""


class InventoryInUse(PlacementError):
    """Inventory that somebody has allocations of cannot be removed."""


class InvalidResourceClass(PlacementError):
    """A resource class is neither known nor creatable."""


class TraitRetrievalFailed(PlacementError):
    """The server would not say which traits it knows."""


class TraitCreationFailed(PlacementError):
    """A trait is neither known nor creatable."""


class ResourceProviderSyncFailed(PlacementError):
    """A flush ended half way; the next one begins by reading what is there."""


class DeclarationRefused(PlacementError):
    """A declaration contradicts what is there, and cannot be made true."""


class ReshapeNeeded(Exception):
    """Raised by a driver whose change would move inventory that is in use.

    Its method is then called again with the allocations, which it moves together with the tree.
    """


class ReshapeFailed(PlacementError):
    """The server refused a reshape: the driver's tree and allocations do not fit together."""


class PlacementReshapeConflict(PlacementError):
    """Somebody else changed a provider or a consumer of the reshape: read again, then reshape."""


class AllocationUpdateFailed(PlacementError):
    """Allocations of a consumer could not be written."""


class AllocationMoveFailed(PlacementError):
    """Allocations could not be moved from one consumer to another."""


class AllocationDeleteFailed(PlacementError):
    """Allocations of a consumer could not be deleted."""
