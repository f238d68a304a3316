"""The outcome of a request: done, not done or unknown."""

from __future__ import annotations

import pytest

from roost.client.errors import (
    AnswerLost,
    NotConfigured,
    PlacementAPIConnectFailure,
    ReadLost,
    ReshapeFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    TransportFailed,
    UnreadableAnswer,
    WriteLost,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.placement import Placement
from roost.client.transport import PlacementRequest, PlacementResponse
from support.stubs.scripted_claims import Script


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.DONE),
        (204, Outcome.DONE),
        (400, Outcome.NOT_DONE),
        (409, Outcome.NOT_DONE),
        (500, Outcome.UNKNOWN),
        (502, Outcome.UNKNOWN),
        (503, Outcome.UNKNOWN),
        (504, Outcome.UNKNOWN),
    ],
)
def test_the_status_of_an_answer_tells_the_outcome(status: int, outcome: Outcome) -> None:
    assert outcome_of(PlacementResponse(status)) is outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (PlacementAPIConnectFailure("refused"), Outcome.NOT_DONE),
        (ReadLost("timed out"), Outcome.NOT_DONE),
        (WriteLost("timed out"), Outcome.UNKNOWN),
        (WriteLost("no answer", status=504), Outcome.UNKNOWN),
        (AnswerLost("timed out"), Outcome.UNKNOWN),
        (TransportFailed("broken"), Outcome.UNKNOWN),
        (NotConfigured("no server"), Outcome.NOT_DONE),
        (ResourceProviderUpdateConflict("changed meanwhile"), Outcome.NOT_DONE),
        (ResourceProviderUpdateFailed("refused", status=400), Outcome.NOT_DONE),
        (ResourceProviderUpdateFailed("failed", status=503), Outcome.UNKNOWN),
        (UnreadableAnswer("garbled", status=200), Outcome.UNKNOWN),
        (KeyError("numa0"), Outcome.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_tells_the_outcome(error: Exception, outcome: Outcome) -> None:
    assert outcome_of(error) is outcome


@pytest.mark.parametrize(
    ("cause", "outcome"),
    [
        (PlacementAPIConnectFailure("refused"), Outcome.NOT_DONE),
        (AnswerLost("timed out"), Outcome.UNKNOWN),
    ],
)
def test_a_reshape_without_answer_has_the_outcome_of_its_request(
    cause: TransportFailed, outcome: Outcome
) -> None:
    with pytest.raises(ReshapeFailed) as caught:
        Placement(Script(("POST /reshaper", cause))).reshape({}, {})
    assert outcome_of(caught.value) is outcome


@pytest.mark.parametrize(
    ("method", "reply", "outcome"),
    [
        ("GET", AnswerLost("timed out"), Outcome.NOT_DONE),
        ("PUT", AnswerLost("timed out"), Outcome.UNKNOWN),
        ("DELETE", AnswerLost("timed out"), Outcome.UNKNOWN),
        ("PUT", PlacementResponse(502), Outcome.UNKNOWN),
        ("POST", PlacementResponse(504), Outcome.UNKNOWN),
    ],
)
def test_a_lost_answer_to_a_read_is_not_one_to_a_write(
    method: str, reply: PlacementResponse | AnswerLost, outcome: Outcome
) -> None:
    placement = Placement(Script((f"{method} /traits", reply)))
    with pytest.raises(AnswerLost) as caught:
        placement.send(PlacementRequest(method, "/traits"))
    assert outcome_of(caught.value) is outcome


@pytest.mark.parametrize("status", [502, 504])
def test_a_read_without_answer_of_a_gateway_is_an_answer(status: int) -> None:
    placement = Placement(Script(("GET /traits", PlacementResponse(status))))
    assert placement.send(PlacementRequest("GET", "/traits")).status == status
