"""Candidates, claims, moves and releases of the typed library, on live servers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from uuid import uuid4

import pytest

from roost.client import Candidate, Claimed, Needs, Roost
from roost.client.errors import (
    AllocationUpdateFailed,
    AlreadyAllocated,
    ClaimRefused,
    NoSuchConsumer,
    NothingFits,
    NotOffered,
    PlacementAPIConnectFailure,
    QuestionRefused,
    WriteLost,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport.http import HttpTransport
from support.client.live_providers import LiveProviders
from support.servers.live_server import LiveServer, ReferenceServer
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server
from support.waiting import SECONDS_MAX


@pytest.fixture
def cpu(roost: Roost, own: LiveProviders) -> str:
    """A resource class of two hosts, a and b, with four each."""
    name = own.custom("CPU")
    for host in ("a", "b"):
        roost.create_provider(own.name(host), uuid=own.uuid(host), inventories={name: 4})
    return name


def used(roost: Roost, own: LiveProviders, host: str) -> int:
    return sum(roost.provider(own.name(host)).used.values())


# Candidates


def test_a_query_is_needs_or_amounts_or_a_text(roost: Roost, own: LiveProviders, cpu: str) -> None:
    roost.set_traits(own.name("a"), [own.custom("GOLD")])
    hosts = {own.uuid("a"), own.uuid("b")}
    for query in ({cpu: 2}, Needs({cpu: 2}), f"resources={cpu}:2"):
        found = roost.candidates(query)
        assert {root for one in found for root in one.roots} == hosts
        assert [list(one.allocations.values()) for one in found] == [[{cpu: 2}]] * 2
    gold = roost.candidates(Needs({cpu: 2}, required=[own.custom("GOLD")]))
    assert [one.roots for one in gold] == [(own.uuid("a"),)]
    rest = roost.candidates(Needs({cpu: 2}, forbidden=[own.custom("GOLD")]))
    assert [one.roots for one in rest] == [(own.uuid("b"),)]
    assert len(roost.candidates({cpu: 2}, limit=1)) == 1
    assert roost.candidates({cpu: 5}) == ()


def test_a_query_names_providers_by_name(roost: Roost, own: LiveProviders, cpu: str) -> None:
    claimed = roost.claim(Needs({cpu: 1}, in_tree=own.name("b")))
    assert claimed.consumer.holds == {own.uuid("b"): {cpu: 1}}


def test_a_question_with_a_misspelt_class_is_refused_with_its_reason(roost: Roost) -> None:
    with pytest.raises(QuestionRefused, match="CUSTOM_MISSPELT") as refused:
        roost.candidates({"CUSTOM_MISSPELT": 1})
    assert refused.value.status == 400


def test_only_roost_explains_counts_and_orders(
    roost: Roost, own: LiveProviders, cpu: str, server: LiveServer
) -> None:
    if isinstance(server, ReferenceServer):
        for ask in (
            lambda: roost.explain({cpu: 5}),
            lambda: roost.capacity({cpu: 1}),
            lambda: roost.candidates({cpu: 1}, order="pack"),
        ):
            with pytest.raises(NotOffered):
                ask()
        return
    why = roost.explain({cpu: 5}, misses=2)
    assert not why.feasible
    assert why.reason is not None
    assert why.reason.resource_class == cpu or cpu in why.reason.text
    assert {miss.root.name for miss in why.misses} == {own.name("a"), own.name("b")}
    assert roost.explain({cpu: 4}, provider=own.name("a")).feasible
    roost.claim_on({own.name("a"): {cpu: 1}})
    assert roost.capacity({cpu: 2}).fits == 3
    by_root = roost.capacity({cpu: 2}, by_root=True)
    assert {one.root.name: one.fits for one in by_root.roots} == {
        own.name("a"): 1,
        own.name("b"): 2,
    }
    for order, host in (("pack", "a"), ("spread", "b")):
        assert roost.candidates({cpu: 1}, order=order)[0].roots == (own.uuid(host),)


# Claims


def test_a_claim_takes_a_candidate_for_a_new_consumer(
    roost: Roost, own: LiveProviders, cpu: str
) -> None:
    claimed = roost.claim({cpu: 3}, type="INSTANCE")
    consumer = roost.consumer(claimed.consumer.uuid)
    assert consumer is not None
    assert consumer.holds == claimed.consumer.holds
    assert (consumer.project, consumer.user, consumer.type) == ("project", "user", "INSTANCE")
    assert consumer.amounts == {cpu: 3}
    assert (claimed.repeated, claimed.overtaken) == (False, 0)


def test_groups_of_a_claim_name_their_providers(roost: Roost, own: LiveProviders) -> None:
    port = own.custom("PORT")
    host = roost.create_provider(own.name("host"))
    for nic in ("nic0", "nic1"):
        roost.create_provider(own.name(nic), parent=host, inventories={port: 1})
    needs = Needs(groups={"left": Needs({port: 1}), "right": Needs({port: 1})}, isolate=True)
    claimed = roost.claim(needs)
    (left,), (right,) = claimed.groups["_left"], claimed.groups["_right"]
    assert claimed.consumer.holds == {left: {port: 1}, right: {port: 1}}


def test_a_claim_that_fits_nowhere_says_why(
    roost: Roost, own: LiveProviders, cpu: str, server: LiveServer
) -> None:
    consumer = str(uuid4())
    with pytest.raises(NothingFits, match=consumer) as refused:
        roost.claim({cpu: 5}, consumer=consumer)
    assert roost.consumer(consumer) is None
    if isinstance(server, ReferenceServer):
        assert refused.value.why is None
    else:
        assert refused.value.why is not None
        assert not refused.value.why.feasible
        assert refused.value.detail
    assert outcome_of(refused.value) is Outcome.NOT_DONE


def test_a_claim_takes_the_next_candidate_if_another_client_is_first(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    first = roost.candidates({cpu: 4})[0]
    faults.before("PUT /allocations/*", lambda: own.claim("rival", **_short(own, first, cpu)))
    claimed = roost.claim({cpu: 4})
    assert claimed.overtaken == 1
    assert set(claimed.consumer.holds).isdisjoint(first.allocations)


def test_a_claim_ends_after_its_tries(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    first = roost.candidates({cpu: 4})[0]
    faults.before("PUT /allocations/*", lambda: own.claim("rival", **_short(own, first, cpu)))
    with pytest.raises(ClaimRefused) as refused:
        roost.claim({cpu: 4}, tries=1)
    assert refused.value.resource_class == cpu
    assert refused.value.provider_uuid in first.allocations


def _short(own: LiveProviders, candidate: Candidate, cpu: str) -> dict[str, dict[str, int]]:
    """What leaves one too little for the candidate, by short names of providers."""
    return {own.short(uuid): {cpu: 1} for uuid in candidate.allocations}


def test_a_claim_on_a_full_provider_names_what_is_short(
    roost: Roost, own: LiveProviders, cpu: str
) -> None:
    with pytest.raises(ClaimRefused) as refused:
        roost.claim_on({own.name("a"): {cpu: 5}})
    assert (refused.value.resource_class, refused.value.provider_uuid) == (cpu, own.uuid("a"))
    assert used(roost, own, "a") == 0


def test_a_consumer_that_holds_something_claims_nothing_more(
    roost: Roost, own: LiveProviders, cpu: str
) -> None:
    """Nova's rule would answer that the claim is made."""
    consumer = str(uuid4())
    roost.claim_on({own.name("a"): {cpu: 1}}, consumer=consumer)
    held = {own.uuid("a"): {cpu: 1}}
    claims: tuple[Callable[[], Claimed], ...] = (
        lambda: roost.claim({cpu: 2}, consumer=consumer),
        lambda: roost.claim({cpu: 1}, consumer=consumer),
        lambda: roost.claim_on({own.name("a"): {cpu: 2}}, consumer=consumer),
        lambda: roost.claim_on({own.name("b"): {cpu: 1}}, consumer=consumer),
    )
    for claim in claims:
        with pytest.raises(AlreadyAllocated) as refused:
            claim()
        assert refused.value.held == held
    again = roost.claim_on({own.name("a"): {cpu: 1}}, consumer=consumer.upper())
    assert again.repeated
    assert (used(roost, own, "a"), used(roost, own, "b")) == (1, 0)


def test_a_consumer_that_another_client_gives_something_meanwhile_keeps_that(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    consumer = own.uuid("consumer")
    faults.before("PUT /allocations/*", lambda: own.claim("consumer", b={cpu: 2}))
    with pytest.raises(AlreadyAllocated) as refused:
        roost.claim_on({own.name("a"): {cpu: 1}}, consumer=consumer)
    assert refused.value.held == {own.uuid("b"): {cpu: 2}}
    assert used(roost, own, "a") == 0


def test_amounts_must_be_there_and_positive(roost: Roost, own: LiveProviders, cpu: str) -> None:
    host = own.name("a")
    refused: tuple[dict[str, dict[str, int]], ...] = ({}, {host: {}}, {host: {cpu: 0}})
    for allocations in refused:
        with pytest.raises(ValueError, match=r"resources were given|amount of"):
            roost.claim_on(allocations)
    with pytest.raises(ValueError, match="two names"):
        roost.claim_on({own.name("a"): {cpu: 1}, own.uuid("a"): {cpu: 1}})
    with pytest.raises(ValueError, match="tries is 0"):
        roost.claim({cpu: 1}, tries=0)


@one_server
def test_many_threads_claim_exactly_what_there_is(
    own: LiveProviders, cpu: str, server: LiveServer
) -> None:
    """Eight fit, and twelve threads claim at once with one object."""
    made: list[Claimed] = []
    refused: list[AllocationUpdateFailed] = []
    barrier = Barrier(12)
    with Roost(HttpTransport(server.url, "admin"), sleep=lambda _seconds: None) as roost:

        def claim() -> None:
            barrier.wait(SECONDS_MAX)
            for _ in range(20):
                try:
                    made.append(roost.claim({cpu: 1}, tries=50))
                    return
                except NothingFits as error:
                    refused.append(error)
                    return
                except ClaimRefused:
                    continue

        threads = [Thread(target=claim) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS_MAX)
        assert (len(made), len(refused)) == (8, 4)
        assert {used(roost, own, host) for host in ("a", "b")} == {4}


# Moves


def test_a_move_leaves_the_host_in_one_write(
    roost: Roost, own: LiveProviders, cpu: str, transport: CountingTransport
) -> None:
    claimed = roost.claim_on({own.name("a"): {cpu: 3}}, type="INSTANCE", project="other")
    transport.forget()
    moved = roost.move(claimed.consumer.uuid)
    assert transport.writes == [f"PUT /allocations/{claimed.consumer.uuid}"]
    assert moved.consumer.holds == {own.uuid("b"): {cpu: 3}}
    now = roost.consumer(claimed.consumer.uuid)
    assert now is not None
    assert (now.holds, now.type, now.project) == (moved.consumer.holds, "INSTANCE", "other")
    assert (used(roost, own, "a"), used(roost, own, "b")) == (0, 3)


def test_a_move_goes_where_its_query_says_and_off_the_named_hosts(
    roost: Roost, own: LiveProviders, cpu: str
) -> None:
    consumer = roost.claim_on({own.name("a"): {cpu: 1}}).consumer.uuid
    assert roost.move(consumer, {cpu: 2}).consumer.holds == {own.uuid("b"): {cpu: 2}}
    stays = roost.move(consumer, {cpu: 1}, off=[own.name("a")])
    assert stays.consumer.holds == {own.uuid("b"): {cpu: 1}}
    with pytest.raises(NothingFits, match="must leave"):
        roost.move(consumer, off=[own.name("a"), own.name("b")])
    assert (used(roost, own, "a"), used(roost, own, "b")) == (0, 1)


def test_a_move_keeps_shared_storage(roost: Roost, own: LiveProviders) -> None:
    cpu, disk, rack = own.custom("CPU"), own.custom("DISK"), own.uuid("rack")
    for host in ("a", "b"):
        roost.create_provider(own.name(host), inventories={cpu: 4}, aggregates=[rack])
    pool = roost.create_provider(
        own.name("pool"),
        inventories={disk: 10},
        traits=["MISC_SHARES_VIA_AGGREGATE"],
        aggregates=[rack],
    )
    consumer = roost.claim({cpu: 1, disk: 2}).consumer
    moved = roost.move(consumer.uuid).consumer
    assert moved.holds[pool.uuid] == {disk: 2}
    assert set(moved.holds) != set(consumer.holds)
    assert moved.amounts == {cpu: 1, disk: 2}


def test_a_consumer_with_one_class_of_two_providers_keeps_that_shape(
    roost: Roost, own: LiveProviders
) -> None:
    port = own.custom("PORT")
    for host in ("a", "b"):
        roost.create_provider(own.name(host))
        for nic in ("0", "1"):
            roost.create_provider(
                own.name(host + nic), parent=own.name(host), inventories={port: 1}
            )
    claimed = roost.claim_on({own.name("a0"): {port: 1}, own.name("a1"): {port: 1}})
    moved = roost.move(claimed.consumer.uuid)
    expected = {roost.provider(own.name(nic)).uuid: {port: 1} for nic in ("b0", "b1")}
    assert moved.consumer.holds == expected


def test_a_move_to_named_providers_may_be_repeated(
    roost: Roost, own: LiveProviders, cpu: str
) -> None:
    consumer = roost.claim_on({own.name("a"): {cpu: 1}}).consumer.uuid
    assert not roost.move_to(consumer, {own.name("b"): {cpu: 4}}).repeated
    assert roost.move_to(consumer, {own.name("b"): {cpu: 4}}).repeated
    with pytest.raises(ClaimRefused):
        roost.move_to(consumer, {own.name("a"): {cpu: 5}})
    assert (used(roost, own, "a"), used(roost, own, "b")) == (0, 4)


def test_a_consumer_that_holds_nothing_cannot_move(roost: Roost) -> None:
    with pytest.raises(NoSuchConsumer):
        roost.move(str(uuid4()))


def test_a_move_replaces_nothing_that_another_client_has_changed(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    own.claim("consumer", a={cpu: 1})
    faults.before("PUT /allocations/*", lambda: own.claim("consumer", a={cpu: 2}))
    with pytest.raises(AllocationUpdateFailed, match="another writer"):
        roost.move(own.uuid("consumer"))
    assert own.taken("consumer") == {"a": {cpu: 2}}


# Releases and lists


def test_a_release_returns_what_was_held(roost: Roost, own: LiveProviders, cpu: str) -> None:
    claimed = roost.claim_on({own.name("a"): {cpu: 2}})
    held = roost.release(claimed.consumer.uuid)
    assert held is not None
    assert held.holds == claimed.consumer.holds
    assert roost.consumer(claimed.consumer.uuid) is None
    assert roost.release(claimed.consumer.uuid) is None
    assert used(roost, own, "a") == 0


def test_consumers_are_found_by_their_conditions(
    roost: Roost, own: LiveProviders, cpu: str
) -> None:
    project = own.name("project")
    first = roost.claim_on({own.name("a"): {cpu: 1}}, project=project, type="INSTANCE").consumer
    second = roost.claim_on({own.name("b"): {cpu: 1}}, project=project, user="alice").consumer
    assert {one.uuid for one in roost.consumers(project=project)} == {first.uuid, second.uuid}
    assert [one.uuid for one in roost.consumers(project=project, user="alice")] == [second.uuid]
    assert [one.uuid for one in roost.consumers(provider=own.name("a"))] == [first.uuid]
    assert [one.uuid for one in roost.consumers(type="INSTANCE", project=project)] == [first.uuid]


# Lost answers


@one_server
def test_a_claim_a_move_and_a_release_survive_a_lost_answer(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    faults.lose_answer("PUT /allocations/*")
    claimed = roost.claim_on({own.name("a"): {cpu: 1}})
    assert not claimed.repeated
    faults.lose_answer("PUT /allocations/*")
    roost.move(claimed.consumer.uuid)
    assert (used(roost, own, "a"), used(roost, own, "b")) == (0, 1)
    faults.lose_answer("PUT /allocations/*")
    assert roost.release(claimed.consumer.uuid) is not None
    assert faults.left == []
    assert used(roost, own, "b") == 0


@one_server
def test_an_unknown_outcome_is_never_told_as_a_refusal(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    consumer = str(uuid4())
    faults.lose_answer("PUT /allocations/*")
    faults.unreachable("* /allocations/*", times=100, after=2)
    with pytest.raises(WriteLost) as lost:
        roost.claim({cpu: 1}, consumer=consumer)
    assert outcome_of(lost.value) is Outcome.UNKNOWN


@one_server
def test_a_server_that_is_away_made_no_claim(
    roost: Roost, own: LiveProviders, cpu: str, faults: TamperingTransport
) -> None:
    faults.unreachable("PUT /allocations/*")
    with pytest.raises(PlacementAPIConnectFailure) as away:
        roost.claim({cpu: 1})
    assert outcome_of(away.value) is Outcome.NOT_DONE
    assert used(roost, own, "a") + used(roost, own, "b") == 0


@one_server
def test_a_transport_brings_its_own_token(transport: CountingTransport) -> None:
    with pytest.raises(ValueError, match="give the token to `connect`"):
        Roost(transport, token="secret")
