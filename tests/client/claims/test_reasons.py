"""Candidates and claims that say why: versions, consumer types, and errors with reasons."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from roost.client import CandidateAnswer, Claims
from roost.client.errors import (
    AllocationUpdateFailed,
    AlreadyAllocated,
    ClaimRefused,
    PlacementAPIConnectFailure,
    QuestionRefused,
    WriteLost,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import Transport
from roost.client.transport.http import HttpTransport
from roost.client.transport.retrying import RetryPolicy
from roost.client.versions import ServerTooOld
from support.client.live_providers import LiveProviders
from support.servers.live_server import LiveServer, ReferenceServer
from support.stubs.placement_stub import PlacementStub, Received, Reply
from support.stubs.scripted_claims import (
    ALICE,
    CONSUMER_CONFLICT,
    DONE,
    FULL,
    GET_A,
    HOST,
    NOTHING,
    OTHER,
    PROVIDER_CONFLICT,
    PUT_A,
    REQUEST,
    UNREACHABLE,
    VCPU_1,
    VERSIONS,
    Run,
    Step,
    answer,
    holds,
    lost,
    refused,
)
from support.transports.counting import CountingTransport

ASK = "GET /allocation_candidates?limit=1000&resources=VCPU%3A1"
EMPTY: dict[str, Any] = {"allocation_requests": [], "provider_summaries": {}}


def versions(newest: str) -> Step:
    return "GET /", answer({"versions": [{"max_version": newest}]})


def find(claims: Claims) -> object:
    return claims.find_candidates({"resources": "VCPU:1"})


def claim(claims: Claims, **arguments: Any) -> None:
    claims.claim(ALICE, REQUEST, "project", "user", **arguments)


# -- versions


@pytest.mark.parametrize(("newest", "used"), [("1.28", "1.28"), ("1.36", "1.36"), ("1.99", "1.39")])
def test_candidates_have_the_newest_version_that_both_sides_speak(newest: str, used: str) -> None:
    run = Run(find, versions(newest), (ASK, answer(EMPTY)))
    assert run.versions[-1] == used
    assert run.result == CandidateAnswer([], {}, used)


def test_the_versions_are_asked_for_once() -> None:
    def twice(claims: Claims) -> None:
        find(claims)
        find(claims)
        claim(claims)

    found: Step = (ASK, answer(EMPTY))
    run = Run(twice, VERSIONS, found, found, (GET_A, NOTHING), (PUT_A, DONE))
    assert run.versions == [None, "1.39", "1.39", "1.39", "1.37"]


def test_an_older_server_that_takes_over_is_asked_again() -> None:
    def twice(claims: Claims) -> object:
        find(claims)
        return find(claims)

    before: list[Step] = [VERSIONS, (ASK, answer(EMPTY))]
    after: list[Step] = [(ASK, refused(406)), versions("1.36"), (ASK, answer(EMPTY))]
    assert Run(twice, *before, *after).result == CandidateAnswer([], {}, "1.36")


def test_a_server_before_1_28_is_too_old() -> None:
    run = Run(find, versions("1.27"))
    assert isinstance(run.error, ServerTooOld)
    assert "1.27 at most, and claims need 1.28" in str(run.error)
    drop_in = Run(lambda claims: claims.allocation_candidates({}), versions("1.27"))
    assert drop_in.result == (None, None, None)


# -- consumer types


@pytest.mark.parametrize(
    ("given", "present", "version", "sent"),
    [
        ("INSTANCE", None, "1.39", "INSTANCE"),
        ("INSTANCE", "MIGRATION", "1.39", "INSTANCE"),
        (None, "MIGRATION", "1.39", "MIGRATION"),
        (None, "unknown", "1.37", None),
        (None, None, "1.37", None),
    ],
)
def test_a_claim_has_the_given_type_or_keeps_the_present_one(
    given: str | None, present: str | None, version: str, sent: str | None
) -> None:
    read = NOTHING if present is None else holds({HOST: VCPU_1}, consumer_type=present)
    run = Run(
        lambda claims: claim(claims, consumer_type=given), VERSIONS, (GET_A, read), (PUT_A, DONE)
    )
    assert run.error is None
    assert run.versions == [None, "1.39", version]
    assert run.body.get("consumer_type") == sent


def test_a_type_is_an_error_for_a_version_without_types() -> None:
    old = Run(lambda claims: claim(claims, version="1.36", consumer_type="INSTANCE"))
    assert isinstance(old.error, ValueError)
    assert "1.38" in str(old.error)
    server = Run(lambda claims: claim(claims, consumer_type="INSTANCE"), versions("1.37"))
    assert isinstance(server.error, ServerTooOld)
    assert "Leave the type out" in str(server.error)


def test_a_lost_claim_with_another_type_is_not_taken_for_done() -> None:
    before = holds({HOST: VCPU_1}, consumer_type="MIGRATION")
    after = holds({HOST: VCPU_1}, 2, consumer_type="INSTANCE")
    write: Step = (PUT_A, lost())
    run = Run(
        lambda claims: claim(claims, consumer_type="INSTANCE"),
        *(VERSIONS, (GET_A, before), write, (GET_A, before), write, (GET_A, after)),
    )
    assert run.error is None


def test_a_consumer_keeps_its_type_on_live_servers(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    first = live_providers.add("first", totals={"VCPU": 4})
    second = live_providers.add("second", totals={"VCPU": 4})
    claims, consumer = quick(transport), str(uuid4())
    claims.claim(consumer, request_for(first), "project", "user", consumer_type="INSTANCE")
    claims.claim(consumer, request_for(second), "project", "user")
    assert type_of(live_providers, consumer) == "INSTANCE"
    claims.claim(consumer, request_for(second), "project", "user", version="1.36")
    assert type_of(live_providers, consumer) == "INSTANCE"
    untyped = str(uuid4())
    claims.claim(untyped, request_for(first), "project", "user")
    assert type_of(live_providers, untyped) == "unknown"


# -- reasons


def test_a_refused_question_has_the_reason_of_the_server() -> None:
    body = "Bad request in general.\n\n Invalid resource class in resources parameter: VCUP  "
    run = Run(find, VERSIONS, (ASK, refused(400, body, "placement.query.bad_value")))
    assert isinstance(run.error, QuestionRefused)
    assert run.error.detail == "Invalid resource class in resources parameter: VCUP"
    assert (run.error.status, run.error.code) == (400, "placement.query.bad_value")


def test_an_unreachable_server_is_not_an_empty_answer() -> None:
    assert isinstance(Run(find, VERSIONS, (ASK, UNREACHABLE)).error, PlacementAPIConnectFailure)


def test_an_empty_answer_of_roost_has_its_reason(
    server: LiveServer, transport: CountingTransport
) -> None:
    live_providers = LiveProviders(transport)
    resource_class = live_providers.custom("CPU")
    live_providers.send("PUT", f"/resource_classes/{resource_class}")
    found = quick(transport).find_candidates({"resources": f"{resource_class}:1"})
    assert found.allocation_requests == []
    if isinstance(server, ReferenceServer):
        assert found.reason is None
    else:
        assert resource_class in str(found.reason)
    with pytest.raises(QuestionRefused, match="CUSTOM_MISSPELT"):
        quick(transport).find_candidates({"resources": "CUSTOM_MISSPELT:1"})


def test_a_refused_claim_names_what_is_short_on_live_servers(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    host = live_providers.add("host", totals={"VCPU": 4})
    with pytest.raises(ClaimRefused, match="capacity") as caught:
        quick(transport).claim(str(uuid4()), request_for(host, 5), "project", "user")
    error = caught.value
    assert (error.status, error.code) == (409, "placement.undefined_code")
    assert (error.resource_class, error.provider_uuid) == ("VCPU", host)
    assert error.request_id is not None
    with pytest.raises(ClaimRefused) as caught:
        quick(transport).claim(str(uuid4()), request_for(str(uuid4())), "project", "user")
    assert (caught.value.status, caught.value.resource_class) == (400, None)


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([(GET_A, NOTHING), (PUT_A, FULL)], ClaimRefused),
        ([(GET_A, NOTHING), (PUT_A, PROVIDER_CONFLICT)] * 4, ClaimRefused),
        ([(GET_A, NOTHING), (PUT_A, CONSUMER_CONFLICT)], AllocationUpdateFailed),
        ([(GET_A, NOTHING), (PUT_A, lost()), *[(GET_A, UNREACHABLE)] * 4], WriteLost),
        ([(GET_A, refused(500, "broken"))], ClaimRefused),
        ([(GET_A, UNREACHABLE)], PlacementAPIConnectFailure),
        ([(GET_A, NOTHING), (PUT_A, refused(429, "slow down"))], ClaimRefused),
    ],
)
def test_a_claim_that_is_not_made_raises_why(steps: list[Step], error: type[Exception]) -> None:
    run = Run(lambda claims: claim(claims, version="1.36"), *steps)
    assert type(run.error) is error


@pytest.mark.parametrize("held", [{"VCPU": 2}, {"VCPU": 1, "MEMORY_MB": 64}, {"MEMORY_MB": 64}])
def test_a_claim_of_a_provider_that_the_consumer_uses_is_made_or_raises(
    held: dict[str, int],
) -> None:
    """Nova's rule, by which nothing is claimed of such a provider, is that of claim_resources."""
    read = (GET_A, holds({HOST.upper(): {"resources": held}}))
    run = Run(lambda claims: claim(claims, version="1.36"), read)
    assert isinstance(run.error, AlreadyAllocated)
    assert outcome_of(run.error) is Outcome.NOT_DONE
    assert run.error.provider_uuid == HOST.upper()
    for words in (
        ALICE,
        "holds 2 VCPU" if held == {"VCPU": 2} else "64 MEMORY_MB",
        "claims 1 VCPU",
    ):
        assert words in str(run.error)


def test_a_claim_that_the_consumer_has_already_made_is_made_again() -> None:
    run = Run(
        lambda claims: claim(claims, version="1.36"),
        (GET_A, holds({HOST: VCPU_1, OTHER: VCPU_1}, 3)),
        (PUT_A, DONE),
    )
    assert run.error is None
    assert run.body["allocations"] == {HOST: VCPU_1, OTHER: VCPU_1}
    assert run.body["consumer_generation"] == 3


def test_a_second_claim_of_one_provider_changes_nothing_on_live_servers(
    transport: CountingTransport,
) -> None:
    host = LiveProviders(transport).add("host", totals={"VCPU": 8})
    claims, consumer = quick(transport), str(uuid4())
    claims.claim(consumer, request_for(host, 2), "project", "user")
    claims.claim(consumer, request_for(host, 2), "project", "user")
    with pytest.raises(AlreadyAllocated, match="2 VCPU"):
        claims.claim(consumer, request_for(host, 3), "project", "user")
    assert claims.claim_resources(consumer, request_for(host, 3), "project", "user") is True
    held = LiveProviders(transport).send("GET", f"/allocations/{consumer}").json["allocations"]
    assert held[host]["resources"] == {"VCPU": 2}


def test_a_claim_that_is_made_raises_nothing() -> None:
    run = Run(lambda claims: claim(claims, version="1.36"), (GET_A, NOTHING), (PUT_A, DONE))
    assert run.error is None


# -- servers that are busy


def test_a_busy_server_after_a_loss_is_tried_again_and_never_a_refusal() -> None:
    busy = refused(429, "slow down")
    run = Run(
        lambda claims: claim(claims, version="1.36"),
        *((GET_A, NOTHING), (PUT_A, lost())),
        *((GET_A, NOTHING), (PUT_A, busy)),
        *((GET_A, busy), (GET_A, NOTHING), (PUT_A, DONE)),
    )
    assert run.error is None
    stays: list[Step] = [(GET_A, NOTHING), (PUT_A, busy)] * 3
    begin: list[Step] = [(GET_A, NOTHING), (PUT_A, lost())]
    run = Run(lambda claims: claim(claims, version="1.36"), *begin, *stays, (GET_A, NOTHING))
    assert isinstance(run.error, WriteLost)


@pytest.mark.parametrize(("seconds", "made"), [(7, True), (3600, False)])
def test_a_claim_waits_as_long_as_the_server_asks_within_bounds(seconds: int, made: bool) -> None:
    slept: list[float] = []
    retries = RetryPolicy(sleep=slept.append, random=lambda: 0.0)
    busy = Reply(429, {"errors": []}, {"Retry-After": str(seconds)})

    def answered(request: Received) -> Reply:
        return Reply(body={"allocations": {}}) if request.method == "GET" else Reply(204)

    with PlacementStub(Reply(body={"allocations": {}}), busy, otherwise=answered) as stub:
        transport = HttpTransport(stub.url, "admin", retries=retries)
        claimed = Claims(transport).claim_resources(ALICE, REQUEST, "p", "u", version="1.36")
        transport.close()
    assert claimed is made
    assert slept == ([7.0] if made else [])
    assert [request.method for request in stub.received] == ["GET", "PUT"] + ["PUT"] * made


def quick(transport: Transport) -> Claims:
    return Claims(transport, sleep=lambda seconds: None)


def request_for(provider: str, amount: int = 1) -> dict[str, Any]:
    return {"allocations": {provider: {"resources": {"VCPU": amount}}}}


def type_of(live_providers: LiveProviders, consumer: str) -> str:
    found = live_providers.send("GET", f"/allocations/{consumer}", version="1.38")
    kind: str = found.field("consumer_type")
    return kind
