"""Claims on live servers."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from roost.client.claims import Claims
from roost.client.errors import (
    AllocationDeleteFailed,
    AllocationMoveFailed,
    AllocationUpdateFailed,
    AnswerLost,
)
from roost.client.transport import PlacementRequest, Transport
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport

VCPU_1, VCPU_2 = {"resources": {"VCPU": 1}}, {"resources": {"VCPU": 2}}


WRITE = "P* *"
"""The pattern of a write: a POST or a PUT."""


def claims_of(transport: Transport) -> Claims:
    return Claims(transport, sleep=lambda _seconds: None)


def new_provider(transport: Transport, parent: str | None = None, vcpus: int = 8) -> str:
    """A new provider; its name is its UUID."""
    uuid = str(uuid4())
    body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
    assert transport.send(PlacementRequest("POST", "/resource_providers", body, "1.20")).ok
    inventories = {"inventories": {"VCPU": {"total": vcpus}}, "resource_provider_generation": 0}
    path = f"/resource_providers/{uuid}/inventories"
    assert transport.send(PlacementRequest("PUT", path, inventories, "1.26")).ok
    return uuid


def new_consumer(transport: Transport, *providers: str) -> str:
    """A new consumer with one VCPU of each provider."""
    consumer = str(uuid4())
    if providers:
        request = {"allocations": {provider: VCPU_1 for provider in providers}}
        assert claims_of(transport).claim_resources(consumer, request, "project", "user")
    return consumer


def consumer_body(transport: Transport, consumer: str, version: str = "1.28") -> Any:
    """The allocations of a consumer, with project, user and generation."""
    body = transport.send(PlacementRequest("GET", f"/allocations/{consumer}", version=version)).json
    for entry in body["allocations"].values():
        del entry["generation"]
    return body


def amounts(transport: Transport, consumer: str) -> Any:
    return consumer_body(transport, consumer)["allocations"]


def test_a_candidate_can_be_claimed_until_the_provider_is_full(transport: Transport) -> None:
    claims, provider, consumer = claims_of(transport), new_provider(transport), str(uuid4())
    requests, summaries, version = claims.allocation_candidates(
        {"resources": "VCPU:5", "in_tree": provider}
    )
    assert requests is not None
    assert summaries is not None
    assert version is not None
    assert list(summaries) == [provider]
    assert claims.claim_resources(consumer, requests[0], "project", "user", version=version)
    assert amounts(transport, consumer) == {provider: {"resources": {"VCPU": 5}}}
    another = str(uuid4())
    assert not claims.claim_resources(another, requests[0], "project", "user", version=version)
    assert amounts(transport, another) == {}


def test_a_query_that_is_refused_has_no_candidates(transport: Transport) -> None:
    nothing = claims_of(transport).allocation_candidates({"resources": "no such thing"})
    assert nothing == (None, None, None)


def test_a_second_claim_adds_a_provider_and_sets_the_consumer_type(transport: Transport) -> None:
    claims, consumer = claims_of(transport), str(uuid4())
    old, new = new_provider(transport), new_provider(transport)
    first = {"allocations": {old: VCPU_2}, "consumer_type": "INSTANCE"}
    assert claims.claim_resources(consumer, first, "project", "user", version="1.38")
    second = {"allocations": {old: VCPU_1, new: VCPU_1}, "consumer_type": "MIGRATING"}
    assert claims.claim_resources(consumer, second, "project", "user", version="1.38")
    after = consumer_body(transport, consumer, "1.38")
    assert after["allocations"] == {old: VCPU_2, new: VCPU_1}
    assert after["consumer_type"] == "MIGRATING"
    assert after["consumer_generation"] == 2


def test_an_outdated_consumer_generation_is_refused(transport: Transport) -> None:
    claims, provider = claims_of(transport), new_provider(transport)
    consumer = new_consumer(transport, provider)
    request = {"allocations": {new_provider(transport): VCPU_1}}
    with pytest.raises(AllocationUpdateFailed, match="consumer generation conflict"):
        claims.claim_resources(consumer, request, "project", "user", consumer_generation=7)
    body = {**consumer_body(transport, consumer), "consumer_generation": None}
    with pytest.raises(AllocationUpdateFailed, match="consumer generation conflict"):
        claims.put_allocations(consumer, body)
    assert amounts(transport, consumer) == {provider: VCPU_1}


def test_put_replaces_all_allocations(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)
    body = {**consumer_body(transport, consumer), "allocations": {provider: VCPU_2}}
    assert claims_of(transport).put_allocations(consumer, body)
    assert amounts(transport, consumer) == {provider: VCPU_2}


def test_a_repeated_move_is_true(transport: Transport) -> None:
    claims, provider = claims_of(transport), new_provider(transport)
    source, target = new_consumer(transport, provider), new_consumer(transport)
    for _ in range(2):
        assert claims.move_allocations(source, target)
        assert amounts(transport, source) == {}
        assert amounts(transport, target) == {provider: VCPU_1}
    assert not claims.move_allocations(source, new_consumer(transport))


@pytest.mark.parametrize("type_", ["INSTANCE", None])
def test_a_move_keeps_the_consumer_type(transport: Transport, type_: str | None) -> None:
    claims, provider = claims_of(transport), new_provider(transport)
    source, target = new_consumer(transport, provider), new_consumer(transport)
    if type_:
        body = {**consumer_body(transport, source), "consumer_type": type_}
        assert claims.put_allocations(source, body, version="1.38")
    assert claims.move_allocations(source, target, version="1.38")
    after = consumer_body(transport, target, "1.38")
    assert after["allocations"] == {provider: VCPU_1}
    assert after["consumer_type"] == (type_ or "unknown")


def test_two_consumers_that_fill_their_providers_can_swap(transport: Transport) -> None:
    left, right = new_provider(transport, vcpus=1), new_provider(transport, vcpus=1)
    first, second = new_consumer(transport, left), new_consumer(transport, right)
    assert claims_of(transport).swap_allocations(first, second)
    assert amounts(transport, first) == {right: VCPU_1}
    assert amounts(transport, second) == {left: VCPU_1}


@pytest.mark.parametrize("force", [False, True])
def test_a_deletion_leaves_no_allocations(transport: Transport, force: bool) -> None:
    claims, consumer = claims_of(transport), new_consumer(transport, new_provider(transport))
    assert claims.delete_allocations(consumer, force)
    assert amounts(transport, consumer) == {}
    assert not claims.delete_allocations(consumer, force)


def test_resources_are_added_and_removed(transport: Transport) -> None:
    claims, provider, other = (
        claims_of(transport),
        new_provider(transport),
        new_provider(transport),
    )
    consumer = new_consumer(transport, provider)
    assert claims.add_resources(consumer, {provider: {"VCPU": 1}, other: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: VCPU_2, other: VCPU_1}
    with pytest.raises(AllocationUpdateFailed, match="the consumer has 1"):
        claims.remove_resources(consumer, {other: {"VCPU": 2}})
    with pytest.raises(AllocationUpdateFailed, match="capacity"):
        claims.add_resources(consumer, {provider: {"VCPU": 7}})
    assert claims.remove_resources(consumer, {provider: {"VCPU": 1}, other: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: VCPU_1}
    assert claims.remove_resources(consumer, {provider: {"VCPU": 1}})
    assert amounts(transport, consumer) == {}


def test_only_allocations_in_one_tree_are_removed(transport: Transport) -> None:
    claims, root, other = claims_of(transport), new_provider(transport), new_provider(transport)
    child = new_provider(transport, parent=root)
    consumer = new_consumer(transport, root, child, other)
    assert claims.remove_provider_tree(consumer, root)
    assert amounts(transport, consumer) == {other: VCPU_1}


def test_a_host_enters_and_leaves_an_aggregate_while_another_client_changes_it(
    transport: Transport,
) -> None:
    host, ours, theirs = new_provider(transport), str(uuid4()), str(uuid4())
    path = f"/resource_providers/{host}/aggregates"

    def aggregates() -> list[str]:
        found = transport.send(PlacementRequest("GET", path, version="1.19")).json["aggregates"]
        return sorted(found)

    def interfere() -> None:
        claims_of(transport).aggregate_add_host(theirs, host)

    counting = CountingTransport(transport)
    interfering = TamperingTransport(counting)
    interfering.before(WRITE, interfere)
    claims_of(interfering).aggregate_add_host(ours, host)
    assert len(counting.writes) == 2
    assert aggregates() == sorted([ours, theirs])
    claims_of(transport).aggregate_remove_host(ours, host)
    assert aggregates() == [theirs]


def test_a_change_of_another_writer_during_an_edit_is_not_lost(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)

    def interfere() -> None:
        assert claims_of(transport).add_resources(consumer, {provider: {"VCPU": 1}})

    interfering = TamperingTransport(transport)
    interfering.before(WRITE, interfere)
    assert claims_of(interfering).add_resources(consumer, {provider: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: {"resources": {"VCPU": 3}}}


def test_a_change_of_another_writer_during_a_move_or_a_deletion_is_an_error(
    transport: Transport,
) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)

    def interfere() -> None:
        assert claims_of(transport).add_resources(consumer, {provider: {"VCPU": 1}})

    interfering = TamperingTransport(transport)
    interfering.before(WRITE, interfere, times=2)
    with pytest.raises(AllocationMoveFailed, match="consumer generation conflict"):
        claims_of(interfering).move_allocations(consumer, str(uuid4()))
    with pytest.raises(AllocationDeleteFailed, match="consumer generation conflict"):
        claims_of(interfering).delete_allocations(consumer)
    assert amounts(transport, consumer) == {provider: {"resources": {"VCPU": 3}}}


@pytest.mark.parametrize("arrived", [True, False])
def test_a_claim_whose_answer_was_lost_is_done_once(transport: Transport, arrived: bool) -> None:
    provider, consumer = new_provider(transport), str(uuid4())
    counting = CountingTransport(transport)
    interfering = TamperingTransport(counting)
    if arrived:
        interfering.lose_answer(WRITE)
    else:
        interfering.fail(WRITE, AnswerLost("no answer in time"))
    request = {"allocations": {provider: VCPU_1}}
    assert claims_of(interfering).claim_resources(consumer, request, "project", "user")
    assert len(counting.writes) == 1
    assert interfering.left == []
    after = consumer_body(transport, consumer)
    assert after["allocations"] == {provider: VCPU_1}
    assert after["consumer_generation"] == 1


def test_an_edit_whose_answer_was_lost_is_done_once(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)
    interfering = TamperingTransport(transport)
    interfering.lose_answer(WRITE)
    assert claims_of(interfering).add_resources(consumer, {provider: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: VCPU_2}
