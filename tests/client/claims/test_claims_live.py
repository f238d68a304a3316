"""Claims on live servers: what the scripts assume is what servers do."""

from __future__ import annotations

from collections.abc import Callable
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
from roost.client.transport import Request, Response, Transport

VCPU_1, VCPU_2 = {"resources": {"VCPU": 1}}, {"resources": {"VCPU": 2}}


class Meddler:
    """A transport that lets something happen around the first write that goes through it."""

    def __init__(
        self,
        inner: Transport,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self._inner = inner
        self._before = before
        self._after = after
        self.writes = 0

    def send(self, request: Request) -> Response:
        self.writes += request.method != "GET"
        first_write = request.method != "GET" and self.writes == 1
        if first_write:
            self._before()
        answer = self._inner.send(request)
        if first_write:
            self._after()
        return answer

    def close(self) -> None:
        self._inner.close()


def lose_answer() -> None:
    raise AnswerLost("no answer in time")


def claims_of(transport: Transport) -> Claims:
    return Claims(transport, sleep=lambda _seconds: None)


def new_provider(transport: Transport, parent: str | None = None, vcpus: int = 8) -> str:
    """A provider of its own tree or another's; its name is its UUID."""
    uuid = str(uuid4())
    body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
    assert transport.send(Request("POST", "/resource_providers", body, "1.20")).ok
    inventories = {"inventories": {"VCPU": {"total": vcpus}}, "resource_provider_generation": 0}
    path = f"/resource_providers/{uuid}/inventories"
    assert transport.send(Request("PUT", path, inventories, "1.26")).ok
    return uuid


def new_consumer(transport: Transport, *providers: str) -> str:
    """A consumer that holds one VCPU of each provider; nothing of none."""
    consumer = str(uuid4())
    if providers:
        request = {"allocations": {provider: VCPU_1 for provider in providers}}
        assert claims_of(transport).claim_resources(consumer, request, "project", "user")
    return consumer


def held(transport: Transport, consumer: str, version: str = "1.28") -> Any:
    """What the server says that a consumer holds."""
    body = transport.send(Request("GET", f"/allocations/{consumer}", version=version)).json
    for entry in body["allocations"].values():
        del entry["generation"]
    return body


def amounts(transport: Transport, consumer: str) -> Any:
    return held(transport, consumer)["allocations"]


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


def test_a_consumer_being_moved_holds_both_ends_and_keeps_its_type(transport: Transport) -> None:
    claims, consumer = claims_of(transport), str(uuid4())
    old, new = new_provider(transport), new_provider(transport)
    first = {"allocations": {old: VCPU_2}, "consumer_type": "INSTANCE"}
    assert claims.claim_resources(consumer, first, "project", "user", version="1.38")
    second = {"allocations": {old: VCPU_1, new: VCPU_1}, "consumer_type": "MIGRATING"}
    assert claims.claim_resources(consumer, second, "project", "user", version="1.38")
    after = held(transport, consumer, "1.38")
    assert after["allocations"] == {old: VCPU_2, new: VCPU_1}
    assert after["consumer_type"] == "MIGRATING"
    assert after["consumer_generation"] == 2


def test_a_generation_that_is_no_longer_right_is_refused_by_name(transport: Transport) -> None:
    claims, provider = claims_of(transport), new_provider(transport)
    consumer = new_consumer(transport, provider)
    request = {"allocations": {new_provider(transport): VCPU_1}}
    with pytest.raises(AllocationUpdateFailed, match="consumer generation conflict"):
        claims.claim_resources(consumer, request, "project", "user", consumer_generation=7)
    body = {**held(transport, consumer), "consumer_generation": None}
    with pytest.raises(AllocationUpdateFailed, match="consumer generation conflict"):
        claims.put_allocations(consumer, body)
    assert amounts(transport, consumer) == {provider: VCPU_1}


def test_put_replaces_what_was_read(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)
    body = {**held(transport, consumer), "allocations": {provider: VCPU_2}}
    assert claims_of(transport).put_allocations(consumer, body)
    assert amounts(transport, consumer) == {provider: VCPU_2}


def test_a_move_takes_all_and_may_be_repeated(transport: Transport) -> None:
    claims, provider = claims_of(transport), new_provider(transport)
    source, target = new_consumer(transport, provider), new_consumer(transport)
    for _ in range(2):
        assert claims.move_allocations(source, target)
        assert amounts(transport, source) == {}
        assert amounts(transport, target) == {provider: VCPU_1}
    assert not claims.move_allocations(source, new_consumer(transport))


@pytest.mark.parametrize("type_", ["INSTANCE", None])
def test_a_move_takes_the_type_along_if_there_is_one(
    transport: Transport, type_: str | None
) -> None:
    claims, provider = claims_of(transport), new_provider(transport)
    source, target = new_consumer(transport, provider), new_consumer(transport)
    if type_:
        body = {**held(transport, source), "consumer_type": type_}
        assert claims.put_allocations(source, body, version="1.38")
    assert claims.move_allocations(source, target, version="1.38")
    after = held(transport, target, "1.38")
    assert after["allocations"] == {provider: VCPU_1}
    assert after["consumer_type"] == (type_ or "unknown")


def test_two_consumers_that_fill_their_providers_can_swap(transport: Transport) -> None:
    left, right = new_provider(transport, vcpus=1), new_provider(transport, vcpus=1)
    first, second = new_consumer(transport, left), new_consumer(transport, right)
    assert claims_of(transport).swap_allocations(first, second)
    assert amounts(transport, first) == {right: VCPU_1}
    assert amounts(transport, second) == {left: VCPU_1}


@pytest.mark.parametrize("force", [False, True])
def test_what_is_deleted_is_gone(transport: Transport, force: bool) -> None:
    claims, consumer = claims_of(transport), new_consumer(transport, new_provider(transport))
    assert claims.delete_allocations(consumer, force)
    assert amounts(transport, consumer) == {}
    assert not claims.delete_allocations(consumer, force)


def test_resources_come_and_go(transport: Transport) -> None:
    claims, provider, other = (
        claims_of(transport),
        new_provider(transport),
        new_provider(transport),
    )
    consumer = new_consumer(transport, provider)
    assert claims.add_resources(consumer, {provider: {"VCPU": 1}, other: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: VCPU_2, other: VCPU_1}
    with pytest.raises(AllocationUpdateFailed, match="holds 1"):
        claims.remove_resources(consumer, {other: {"VCPU": 2}})
    with pytest.raises(AllocationUpdateFailed, match="capacity"):
        claims.add_resources(consumer, {provider: {"VCPU": 7}})
    assert claims.remove_resources(consumer, {provider: {"VCPU": 1}, other: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: VCPU_1}
    assert claims.remove_resources(consumer, {provider: {"VCPU": 1}})
    assert amounts(transport, consumer) == {}


def test_a_tree_is_let_go_and_nothing_else(transport: Transport) -> None:
    claims, root, other = claims_of(transport), new_provider(transport), new_provider(transport)
    child = new_provider(transport, parent=root)
    consumer = new_consumer(transport, root, child, other)
    assert claims.remove_provider_tree(consumer, root)
    assert amounts(transport, consumer) == {other: VCPU_1}


def test_a_host_enters_and_leaves_an_aggregate_though_others_change_it(
    transport: Transport,
) -> None:
    host, ours, theirs = new_provider(transport), str(uuid4()), str(uuid4())
    path = f"/resource_providers/{host}/aggregates"

    def aggregates() -> list[str]:
        found = transport.send(Request("GET", path, version="1.19")).json["aggregates"]
        return sorted(found)

    def meddle() -> None:
        claims_of(transport).aggregate_add_host(theirs, host)

    meddler = Meddler(transport, before=meddle)
    claims_of(meddler).aggregate_add_host(ours, host)
    assert meddler.writes == 2
    assert aggregates() == sorted([ours, theirs])
    claims_of(transport).aggregate_remove_host(ours, host)
    assert aggregates() == [theirs]


def test_an_edit_between_reading_and_writing_is_not_lost(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)

    def meddle() -> None:
        assert claims_of(transport).add_resources(consumer, {provider: {"VCPU": 1}})

    meddler = Meddler(transport, before=meddle)
    assert claims_of(meddler).add_resources(consumer, {provider: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: {"resources": {"VCPU": 3}}}


def test_a_move_and_a_deletion_give_way_to_another_writer(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)

    def meddle() -> None:
        assert claims_of(transport).add_resources(consumer, {provider: {"VCPU": 1}})

    with pytest.raises(AllocationMoveFailed, match="consumer generation conflict"):
        claims_of(Meddler(transport, meddle)).move_allocations(consumer, str(uuid4()))
    with pytest.raises(AllocationDeleteFailed, match="consumer generation conflict"):
        claims_of(Meddler(transport, meddle)).delete_allocations(consumer)
    assert amounts(transport, consumer) == {provider: {"resources": {"VCPU": 3}}}


@pytest.mark.parametrize("arrived", [True, False])
def test_a_claim_whose_answer_was_lost_is_made_once(transport: Transport, arrived: bool) -> None:
    provider, consumer = new_provider(transport), str(uuid4())
    meddler = Meddler(transport, after=lose_answer) if arrived else Meddler(transport, lose_answer)
    request = {"allocations": {provider: VCPU_1}}
    assert claims_of(meddler).claim_resources(consumer, request, "project", "user")
    assert meddler.writes == (1 if arrived else 2)
    after = held(transport, consumer)
    assert after["allocations"] == {provider: VCPU_1}
    assert after["consumer_generation"] == 1


def test_an_edit_whose_answer_was_lost_is_not_made_twice(transport: Transport) -> None:
    provider = new_provider(transport)
    consumer = new_consumer(transport, provider)
    meddler = Meddler(transport, after=lose_answer)
    assert claims_of(meddler).add_resources(consumer, {provider: {"VCPU": 1}})
    assert amounts(transport, consumer) == {provider: VCPU_2}
