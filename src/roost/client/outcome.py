"""What is known of a request after its answer, or after the error that came instead. Pure."""

from __future__ import annotations

from enum import Enum, auto

from roost.client.errors import (
    PlacementAPIConnectFailure,
    PlacementError,
    ReadLost,
    TransportFailed,
)
from roost.client.transport.messages import PlacementResponse


class Outcome(Enum):
    """Whether the server carried a request out."""

    DONE = auto()
    NOT_DONE = auto()
    UNKNOWN = auto()


def outcome_of(result: PlacementResponse | BaseException) -> Outcome:
    """The outcome of a request that had this answer or raised this error.

    The outcome of a lost write and of a server error (5xx) is unknown. A lost read changed
    nothing, so it is not done.

    >>> outcome_of(PlacementResponse(204)).name, outcome_of(PlacementResponse(409)).name
    ('DONE', 'NOT_DONE')
    >>> outcome_of(PlacementResponse(503)).name
    'UNKNOWN'
    >>> outcome_of(PlacementAPIConnectFailure("refused")).name
    'NOT_DONE'
    """
    if isinstance(result, PlacementResponse):
        return Outcome.DONE if result.ok else _outcome_of_failure(result.status)
    if isinstance(result, TransportFailed):
        without_effect = isinstance(result, PlacementAPIConnectFailure | ReadLost)
        return Outcome.NOT_DONE if without_effect else Outcome.UNKNOWN
    if isinstance(result.__cause__, TransportFailed):
        return outcome_of(result.__cause__)
    if isinstance(result, PlacementError):
        return _outcome_of_failure(result.status)
    return Outcome.UNKNOWN


def _outcome_of_failure(status: int | None) -> Outcome:
    """A request without status was not sent; a status from 400 to 499 is a refusal."""
    is_certain = status is None or 400 <= status < 500
    return Outcome.NOT_DONE if is_certain else Outcome.UNKNOWN
