"""Flushing what is out of date: nobody loses what he wrote."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from roost.client.errors import (
    ResourceProviderSyncFailed,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
)
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.tampering import TamperingTransport, one_server

AVX, AVX2, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"

# Other writers


def test_what_a_driver_does_not_change_is_not_touched(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    tree = reporter.fetch(host)
    tree.add_traits(host, AVX)
    world.set_traits("child", SSE)
    reporter.flush(host, tree)
    assert world.traits("host") == {AVX}
    assert world.traits("child") == {SSE}
    assert reporter.fetch(host).data(child).traits == set(), "as of the last fetch"


@pytest.mark.parametrize(
    "edit",
    [
        lambda tree, host: tree.update_inventory(host, {"VCPU": {"total": 8}}),
        lambda tree, host: tree.add_traits(host, AVX2),
        lambda tree, host: tree.add_aggregates(host, "a0000000-0000-4000-8000-000000000001"),
    ],
    ids=["inventory", "traits", "aggregates"],
)
def test_a_provider_that_somebody_else_changed_is_not_overwritten(
    world: RemoteWorld, reporter: Reporter, edit: Callable[[ProviderTree, str], object]
) -> None:
    host = world.add("host")
    tree = reporter.fetch(host)
    edit(tree, host)
    world.set_traits("host", SSE)
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert (caught.value.status, caught.value.provider_uuid) == (409, host)
    assert caught.value.request_id is not None
    assert world.traits("host") == {SSE}
    assert world.generation("host") == 1, "nothing was written"


def test_aggregates_that_an_old_client_changed_unseen_are_not_overwritten(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host", aggregates=["mine"])
    tree = reporter.fetch(host)
    tree.remove_aggregates(host, world.uuid("mine"))
    world.set_aggregates_unseen("host", "mine", "theirs")
    assert world.generation("host") == tree.data(host).generation
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == host
    assert world.aggregates("host") == ["mine", "theirs"]


@one_server
def test_a_new_provider_that_came_and_went_meanwhile_is_a_conflict(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = world.add("host"), world.uuid("child")
    tree = reporter.fetch(host)
    tree.new_child(world.name("child"), host, child)
    tampering.before("POST *", lambda: world.add("child", "host"))
    tampering.before(f"GET */{child}", lambda: world.delete("child"))
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child


def test_names_that_somebody_deleted_fail_one_flush_and_not_the_next(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host, pearls = world.uuid("host"), world.custom("PEARLS")

    def flush(total: int) -> None:
        tree = reporter.fetch(host)
        tree.update_inventory(host, {pearls: {"total": total}} if total else {})
        reporter.flush(host, tree)

    flush(1)
    flush(0)
    world.send("DELETE", f"/resource_classes/{pearls}")
    with pytest.raises(ResourceProviderSyncFailed) as caught:
        flush(2)
    assert isinstance(caught.value.__cause__, ResourceProviderUpdateFailed)
    flush(2)
    assert world.totals("host") == {pearls: 2}


# Which tree is flushed


@one_server
def test_a_host_has_to_be_fetched_before_it_is_flushed(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    with pytest.raises(ResourceProviderUpdateConflict, match="fetched before") as caught:
        reporter.flush(world.uuid("host"), ProviderTree())
    assert caught.value.provider_uuid == world.uuid("host")
    assert not transport.requests


@one_server
def test_a_tree_from_before_the_last_flush_is_not_flushed(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    host = world.uuid("host")
    early, late = copy.deepcopy(reporter.fetch(host)), reporter.fetch(host)
    late.add_traits(host, AVX)
    reporter.flush(host, late)
    early.add_traits(host, SSE)
    transport.forget()
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, early)
    assert caught.value.provider_uuid == host
    assert not transport.requests
    assert world.traits("host") == {AVX}


@one_server
def test_what_an_earlier_flush_created_is_not_deleted_by_an_older_tree(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.uuid("host")
    early, late = reporter.fetch(host), reporter.fetch(host)
    late.new_child(world.name("child"), host, world.uuid("child"))
    reporter.flush(host, late)
    early.add_traits(host, AVX)
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(host, early)
    assert world.exists("child")


@one_server
def test_a_provider_that_came_after_the_tree_was_fetched_is_not_deleted(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host")
    early = reporter.fetch(host)
    world.add("child", "host")
    reporter.forget(host)
    assert reporter.fetch(host).exists(world.uuid("child"))
    early.add_traits(host, AVX)
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(host, early)
    assert world.exists("child")
