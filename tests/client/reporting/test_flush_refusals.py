"""Flushing what the server refuses: what is raised, and that the next flush repairs it."""

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
from roost.client.transport import Response
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.tampering import REQUEST_ID, TamperingTransport, one_server, refusal

AVX = "HW_CPU_X86_AVX"


def change_everything(world: RemoteWorld, tree: ProviderTree) -> None:
    """An edit for which each kind of request has to be sent."""
    host = world.uuid("host")
    if tree.exists(world.uuid("old")):
        tree.remove(world.uuid("old"))
    if not tree.exists(world.uuid("new")):
        tree.new_child(world.name("new"), host, world.uuid("new"))
    tree.update_inventory(host, {world.custom("PEARLS"): {"total": 1}})
    tree.add_aggregates(host, world.uuid("agg"))
    tree.add_traits(host, world.custom("GOLD"))


CONFLICT = refusal(409, "too late", "placement.concurrent_update")
IN_USE = refusal(409, "taken", "placement.inventory.inuse")
BAD = refusal(400, "nonsense")
BROKEN = refusal(500, "out of order")


class Refusal(NamedTuple):
    """An answer to a request, and what a flush raises after it, about which provider."""

    request: str
    answer: Response
    raised: type[PlacementError]
    about: str | None
    cause: type[PlacementError] | None = None


def failure(
    request: str, answer: Response, cause: type[PlacementError], about: str | None = None
) -> Refusal:
    """One of those after which only the next periodic run is of any use."""
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
def test_a_refusal_ends_the_flush_and_the_next_one_repairs_it(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport, case: Refusal
) -> None:
    host = world.add("host")
    world.add("old", "host")
    tree = reporter.fetch(host)
    change_everything(world, tree)
    tampering.answer(case.request, case.answer)
    with pytest.raises(case.raised) as caught:
        reporter.flush(host, tree)
    error = caught.value
    assert type(error) is case.raised
    assert type(error.__cause__) is (case.cause or type(None))
    assert (error.status, error.detail) == (case.answer.status, case.answer.detail)
    assert error.request_id == REQUEST_ID
    assert error.provider_uuid == (world.uuid(case.about) if case.about else None)

    with pytest.raises(ResourceProviderUpdateConflict, match="fetched before"):
        reporter.flush(host, tree)
    tree = reporter.fetch(host)
    change_everything(world, tree)
    reporter.flush(host, tree)
    assert world.exists("new")
    assert not world.exists("old")
    assert world.totals("host") == {world.custom("PEARLS"): 1}
    assert world.aggregates("host") == ["agg"]
    assert world.traits("host") == {world.custom("GOLD")}


@one_server
@pytest.mark.parametrize("error", [AnswerLost("too slow"), PlacementAPIConnectFailure("nobody")])
def test_without_an_answer_the_flush_ends_as_it_is_and_the_host_is_forgotten(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport, error: PlacementError
) -> None:
    host = world.uuid("host")
    tree = reporter.fetch(host)
    tree.add_traits(host, AVX)
    tampering.fail("PUT */traits", error)
    with pytest.raises(type(error)) as caught:
        reporter.flush(host, tree)
    assert isinstance(caught.value, type(error))
    assert str(caught.value) == str(error)
    with pytest.raises(ResourceProviderUpdateConflict, match="fetched before"):
        reporter.flush(host, tree)


@one_server
def test_a_failed_flush_does_not_forget_other_hosts(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    one, other = world.uuid("one"), world.uuid("other")
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
def test_the_first_error_ends_the_flush_and_nothing_is_rolled_back(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    tree = reporter.fetch(host)
    for uuid in (host, child):
        tree.update_inventory(uuid, {"VCPU": {"total": 8}})
        tree.add_traits(uuid, AVX)
    tampering.answer(f"PUT */{host}/inventories", BAD)
    with pytest.raises(ResourceProviderSyncFailed):
        reporter.flush(host, tree)
    assert (world.totals("child"), world.traits("child")) == ({"VCPU": 8}, {AVX})
    assert (world.totals("host"), world.traits("host")) == ({}, set())
