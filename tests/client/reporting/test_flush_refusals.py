"""Flushes that the server refuses: the error, and the repair by the next flush."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from roost.client.errors import (
    AnswerLost,
    InvalidResourceClass,
    InventoryInUse,
    PlacementAPIConnectFailure,
    PlacementError,
    ResourceProviderAggregateRetrievalFailed,
    ResourceProviderCreationFailed,
    ResourceProviderDeletionFailed,
    ResourceProviderInUse,
    ResourceProviderRetrievalFailed,
    ResourceProviderSyncFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    TraitCreationFailed,
    TraitRetrievalFailed,
)
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementResponse
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import REQUEST_ID, TamperingTransport, one_server, refusal

AVX = "HW_CPU_X86_AVX"


def change_everything(live_providers: LiveProviders, tree: ProviderTree) -> None:
    """Edit a tree so that a flush needs each kind of request."""
    host = live_providers.uuid("host")
    if tree.exists(live_providers.uuid("old")):
        tree.remove(live_providers.uuid("old"))
    if not tree.exists(live_providers.uuid("new")):
        tree.new_child(live_providers.name("new"), host, live_providers.uuid("new"))
    tree.update_inventory(host, {live_providers.custom("PEARLS"): {"total": 1}})
    tree.add_aggregates(host, live_providers.uuid("agg"))
    tree.add_traits(host, live_providers.custom("GOLD"))


CONFLICT = refusal(409, "too late", "placement.concurrent_update")
IN_USE = refusal(409, "taken", "placement.inventory.inuse")
BAD = refusal(400, "nonsense")
BROKEN = refusal(500, "out of order")


class Refusal(NamedTuple):
    """A refused request of a flush, the error of the flush, and the provider in the error."""

    request: str
    answer: PlacementResponse
    raised: type[PlacementError]
    about: str | None
    cause: type[PlacementError] | None = None


def failure(
    request: str, answer: PlacementResponse, cause: type[PlacementError], about: str | None = None
) -> Refusal:
    """A refusal that a flush raises as `ResourceProviderSyncFailed`."""
    return Refusal(request, answer, ResourceProviderSyncFailed, about, cause)


REFUSALS = [
    Refusal("POST *", BROKEN, ResourceProviderCreationFailed, "new"),
    failure("GET /resource_classes", BROKEN, InvalidResourceClass),
    failure("PUT /resource_classes/*", BAD, InvalidResourceClass),
    failure("GET /traits?*", BROKEN, TraitRetrievalFailed),
    failure("PUT /traits/*", BAD, TraitCreationFailed),
    failure("GET /resource_providers/*", BROKEN, ResourceProviderRetrievalFailed, "old"),
    failure("DELETE *", CONFLICT, ResourceProviderInUse, "old"),
    failure("DELETE *", BROKEN, ResourceProviderDeletionFailed, "old"),
    Refusal("PUT */inventories", CONFLICT, ResourceProviderUpdateConflict, "host"),
    Refusal("PUT */inventories", refusal(409), ResourceProviderUpdateConflict, "host"),
    Refusal("PUT */inventories", IN_USE, InventoryInUse, "host"),
    failure("PUT */inventories", BAD, ResourceProviderUpdateFailed, "host"),
    failure("GET */aggregates", BROKEN, ResourceProviderAggregateRetrievalFailed, "host"),
    Refusal("PUT */aggregates", refusal(409), ResourceProviderUpdateConflict, "host"),
    failure("PUT */aggregates", BAD, ResourceProviderUpdateFailed, "host"),
    Refusal("PUT */traits", refusal(409), ResourceProviderUpdateConflict, "host"),
    failure("PUT */traits", BAD, ResourceProviderUpdateFailed, "host"),
]


@one_server
@pytest.mark.parametrize(
    "case", REFUSALS, ids=[f"{case.request} {case.answer.status}" for case in REFUSALS]
)
def test_a_refusal_ends_the_flush_and_the_next_flush_repairs_the_tree(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport, case: Refusal
) -> None:
    host = live_providers.add("host")
    live_providers.add("old", "host")
    tree = reporter.fetch(host)
    change_everything(live_providers, tree)
    tampering.answer(case.request, case.answer)
    with pytest.raises(case.raised) as caught:
        reporter.flush(host, tree)
    error = caught.value
    assert type(error) is case.raised
    assert type(error.__cause__) is (case.cause or type(None))
    assert (error.status, error.detail) == (case.answer.status, case.answer.detail)
    assert error.request_id == REQUEST_ID
    assert error.provider_uuid == (live_providers.uuid(case.about) if case.about else None)

    with pytest.raises(ResourceProviderUpdateConflict, match="fetch it again"):
        reporter.flush(host, tree)
    tree = reporter.fetch(host)
    change_everything(live_providers, tree)
    reporter.flush(host, tree)
    assert live_providers.exists("new")
    assert not live_providers.exists("old")
    assert live_providers.totals("host") == {live_providers.custom("PEARLS"): 1}
    assert live_providers.aggregates("host") == ["agg"]
    assert live_providers.traits("host") == {live_providers.custom("GOLD")}


@one_server
@pytest.mark.parametrize("error", [AnswerLost("too slow"), PlacementAPIConnectFailure("refused")])
def test_a_flush_without_an_answer_raises_the_transports_error(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    error: PlacementError,
) -> None:
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    tree.add_traits(host, AVX)
    tampering.fail("PUT */traits", error)
    with pytest.raises(type(error)) as caught:
        reporter.flush(host, tree)
    assert caught.value.message == error.message
    with pytest.raises(ResourceProviderUpdateConflict, match="fetch it again"):
        reporter.flush(host, tree)


@one_server
def test_a_failed_flush_keeps_the_cached_trees_of_further_hosts(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    one, other = live_providers.uuid("one"), live_providers.uuid("other")
    reporter.fetch(other)
    tree = reporter.fetch(one)
    tree.add_traits(one, AVX)
    tampering.answer("PUT */traits", BAD)
    with pytest.raises(ResourceProviderSyncFailed):
        reporter.flush(one, tree)
    transport.forget()
    reporter.fetch(other)
    assert not transport.requests


@one_server
def test_the_steps_before_the_first_error_of_a_flush_stay(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    tree = reporter.fetch(host)
    for uuid in (host, child):
        tree.update_inventory(uuid, {"VCPU": {"total": 8}})
        tree.add_traits(uuid, AVX)
    tampering.answer(f"PUT */{host}/inventories", BAD)
    with pytest.raises(ResourceProviderSyncFailed):
        reporter.flush(host, tree)
    assert (live_providers.totals("child"), live_providers.traits("child")) == ({"VCPU": 8}, {AVX})
    assert (live_providers.totals("host"), live_providers.traits("host")) == ({}, set())
