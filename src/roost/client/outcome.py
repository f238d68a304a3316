"""What is known of a request after its answer, or after the error that came instead. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

from roost.client.errors import (
    PlacementAPIConnectFailure,
    PlacementError,
    ReadLost,
    TransportFailed,
    WriteLost,
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


@contextmanager
def finding_out(lost: WriteLost | None) -> Iterator[None]:
    """Raise an error of the block as the loss of the write that the block finds out about.

    A read that fails changes nothing. But the write before it may stand, so its outcome counts.
    Without a lost write, the error stays as it is.
    """
    try:
        yield
    except PlacementError as error:
        if lost is None:
            raise
        raise WriteLost(
            f"{lost.message}; whether the server carried it out cannot be found out: {error}",
            status=lost.status,
            detail=lost.detail,
            request_id=lost.request_id,
            provider_uuid=lost.provider_uuid,
            code=lost.code,
        ) from lost
