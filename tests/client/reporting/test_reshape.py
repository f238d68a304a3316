"""Reshaping: inventory in use moves to another provider, together with its allocations."""

from __future__ import annotations

import pytest

from roost.client.drivers.driver import Allocations
from roost.client.errors import (
    AnswerLost,
    InvalidResourceClass,
    PlacementReshapeConflict,
    ReshapeFailed,
    ResourceProviderSyncFailed,
    ResourceProviderUpdateConflict,
)
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from support.client.live_providers import LiveProviders
from support.stubs.scripted_drivers import ReshapingDriver, to_child
from support.transports.counting import CountingTransport
from support.transports.tampering import REQUEST_ID, TamperingTransport, one_server, refusal

SHARES = "MISC_SHARES_VIA_AGGREGATE"
AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"
RESHAPE = "POST /reshaper"

# The request


def test_an_empty_mapping_of_allocations_is_a_reshape(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    reporter.report(ReshapingDriver(to_child(live_providers)), "host", host)
    (sent,) = [request for request in transport.requests if str(request) == RESHAPE]
    assert sent.body["allocations"] == {}
    assert sent.version == "1.30"
    assert not sent.repeatable
    assert live_providers.totals("child") == {"VCPU": 8}


def test_allocations_can_move_between_inventories_that_stay(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    child = live_providers.add("child", "host", totals={"VCPU": 8})
    vm = live_providers.claim("vm", host={"VCPU": 2})

    def move(tree: ProviderTree, allocations: Allocations) -> None:
        used = allocations[vm]["allocations"]
        used[child] = used.pop(host)

    reporter.report(ReshapingDriver(move), "host", host)
    assert live_providers.taken("vm") == {"child": {"VCPU": 2}}


def test_a_reshape_without_changes_is_no_error(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    reporter.report(ReshapingDriver(lambda tree, allocations: None), "host", host)
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_a_reshape_sends_changed_inventories_and_empties_removed_providers(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8}, aggregates=["agg"])
    live_providers.add("child", "host")
    live_providers.add("old", "host", totals={"SRIOV_NET_VF": 4}, traits=[AVX])
    live_providers.add("bare", "host")
    live_providers.add("same", "host", totals={"MEMORY_MB": 64})
    live_providers.add("disk", totals={"DISK_GB": 100}, traits=[SHARES], aggregates=["agg"])
    tree = reporter.fetch(host)
    to_child(live_providers)(tree, {})
    tree.remove(live_providers.uuid("old"))
    tree.remove(live_providers.uuid("bare"))
    reporter.flush(host, tree, {})
    (sent,) = [request.body for request in transport.requests if str(request) == RESHAPE]
    assert {
        live_providers.short(uuid): (
            part["resource_provider_generation"],
            list(part["inventories"]),
        )
        for uuid, part in sent["inventories"].items()
    } == {"host": (2, []), "child": (0, ["VCPU"]), "old": (2, [])}
    assert live_providers.generation("disk") == 3, (
        "the generation of a sharing provider does not change"
    )
    assert live_providers.generation("same") == 1
    assert not live_providers.exists("old")
    assert not live_providers.exists("bare")


@one_server
def test_a_reshape_reads_only_providers_with_further_changes(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    tree = reporter.fetch(host)
    to_child(live_providers)(tree, {})
    tree.add_traits(live_providers.uuid("child"), AVX)
    transport.forget()
    reporter.flush(host, tree, {})
    assert live_providers.traits("child") == {AVX}
    asked = live_providers.in_words(transport.requests)
    assert asked[: asked.index(RESHAPE)] == ["POST /resource_providers"]
    reads = [text for text in asked if text.startswith("GET child/")]
    assert reads == ["GET child/inventories", "GET child/aggregates", "GET child/traits"]
    assert not [text for text in asked if text.startswith("GET host")]


@one_server
def test_a_fetch_after_a_reshape_compares_generations(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    reporter.report(ReshapingDriver(to_child(live_providers)), "host", host)
    transport.forget()
    assert reporter.fetch(host).data(host).generation == live_providers.generation("host")
    assert "in_tree" in str(transport.requests[0])


@one_server
@pytest.mark.parametrize("theirs", ["traits", "inventories"])
def test_changes_of_another_writer_after_the_reshape_are_not_overwritten(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport, theirs: str
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    tree = reporter.fetch(host)
    to_child(live_providers)(tree, {})
    tree.add_traits(live_providers.uuid("child"), AVX)

    def interfere() -> None:
        if theirs == "traits":
            live_providers.set_traits("child", SSE)
        else:
            live_providers.set_totals("child", VCPU=9)

    tampering.before("GET */inventories", interfere)
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree, {})
    assert caught.value.provider_uuid == live_providers.uuid("child")
    assert live_providers.traits("child") == ({SSE} if theirs == "traits" else set())


@one_server
def test_a_removed_provider_that_another_writer_changed_stays_after_a_reshape(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, bare = live_providers.add("host", totals={"VCPU": 8}), live_providers.add("bare", "host")
    tree = reporter.fetch(host)
    to_child(live_providers)(tree, {})
    tree.remove(bare)
    live_providers.set_totals("bare", VCPU=4)
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree, {})
    assert caught.value.provider_uuid == bare
    assert live_providers.totals("bare") == {"VCPU": 4}


@one_server
def test_inventory_that_another_writer_put_on_a_new_provider_is_not_reshaped_away(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    tree = reporter.fetch(host)
    to_child(live_providers)(tree, {})
    live_providers.add("child", "host", totals={"VCPU": 4})
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree, {})
    assert caught.value.provider_uuid == live_providers.uuid("child")
    assert (live_providers.totals("host"), live_providers.totals("child")) == (
        {"VCPU": 8},
        {"VCPU": 4},
    )


# Conflicts and failures


def test_a_consumer_that_changes_before_the_reshape_is_read_again(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    live_providers.claim("vm", host={"VCPU": 2})
    tampering.before(RESHAPE, lambda: live_providers.claim("vm", host={"VCPU": 3}))
    driver = ReshapingDriver(to_child(live_providers))
    reporter.report(driver, "host", host)
    assert live_providers.taken("vm") == {"child": {"VCPU": 3}}
    assert [given is None for given in driver.given] == [True, False] * 2


def test_a_provider_that_changes_before_the_reshape_is_a_conflict_and_clears_the_cache(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    host, other = live_providers.add("host", totals={"VCPU": 8}), live_providers.uuid("other")
    reporter.fetch(other)
    tree = reporter.fetch(host)
    to_child(live_providers)(tree, {})
    tampering.before(RESHAPE, lambda: live_providers.set_totals("host", VCPU=9))
    with pytest.raises(PlacementReshapeConflict) as caught:
        reporter.flush(host, tree, {})
    assert caught.value.status == 409
    assert caught.value.request_id is not None
    assert live_providers.totals("host") == {"VCPU": 9}
    transport.forget()
    reporter.fetch(other)
    assert transport.requests, "the tree of another host may have a reshaped sharing provider"


@one_server
def test_a_reshape_that_conflicts_in_all_attempts_is_an_error(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    conflict = refusal(409, "too late", "placement.concurrent_update")
    tampering.answer(RESHAPE, conflict, times=4)
    driver = ReshapingDriver(to_child(live_providers))
    with pytest.raises(PlacementReshapeConflict) as caught:
        reporter.report(driver, "host", host)
    assert caught.value.request_id == REQUEST_ID
    assert len(driver.given) == 8


def test_a_refused_reshape_is_not_tried_again(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    live_providers.claim("vm", host={"VCPU": 2})
    driver = ReshapingDriver(lambda tree, allocations: tree.update_inventory(host, {}))
    with pytest.raises(ReshapeFailed) as caught:
        reporter.report(driver, "host", host)
    assert caught.value.status == 409
    assert caught.value.request_id is not None
    assert len(driver.given) == 2, "the driver is called once, with and without allocations"
    assert (live_providers.totals("host"), live_providers.taken("vm")) == (
        {"VCPU": 8},
        {"host": {"VCPU": 2}},
    )
    transport.forget()
    reporter.fetch(host)
    assert transport.requests, "the tree of the host is read again"


@one_server
def test_a_reshape_without_an_answer_is_not_tried_again(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    tampering.lose_answer(RESHAPE)
    driver = ReshapingDriver(to_child(live_providers))
    with pytest.raises(ReshapeFailed) as caught:
        reporter.report(driver, "host", host)
    assert isinstance(caught.value.__cause__, AnswerLost)
    assert len(driver.given) == 2


@one_server
def test_a_class_that_cannot_be_created_ends_the_flush_before_the_reshape(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    tree.update_inventory(host, {live_providers.custom("PEARLS"): {"total": 1}})
    tampering.answer("PUT /resource_classes/*", refusal(400))
    with pytest.raises(ResourceProviderSyncFailed) as caught:
        reporter.flush(host, tree, {})
    assert isinstance(caught.value.__cause__, InvalidResourceClass)
    assert RESHAPE not in transport.writes


@one_server
def test_a_class_that_another_client_deleted_fails_one_reshape_and_not_the_next(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, pearls = live_providers.uuid("host"), live_providers.custom("PEARLS")

    def reshape(total: int) -> None:
        tree = reporter.fetch(host)
        tree.update_inventory(host, {pearls: {"total": total}} if total else {})
        reporter.flush(host, tree, {})

    reshape(1)
    reshape(0)
    live_providers.send("DELETE", f"/resource_classes/{pearls}")
    with pytest.raises(ReshapeFailed):
        reshape(2)
    reshape(2)
    assert live_providers.totals("host") == {pearls: 2}
