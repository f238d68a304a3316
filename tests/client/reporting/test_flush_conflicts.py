"""Flushing an outdated tree: the changes of other writers are not lost."""

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
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

AVX, AVX2, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"

# Other writers


def test_providers_that_the_driver_does_not_change_are_not_written(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    tree = reporter.fetch(host)
    tree.add_traits(host, AVX)
    live_providers.set_traits("child", SSE)
    reporter.flush(host, tree)
    assert live_providers.traits("host") == {AVX}
    assert live_providers.traits("child") == {SSE}
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
def test_a_provider_that_another_writer_changed_is_not_overwritten(
    live_providers: LiveProviders, reporter: Reporter, edit: Callable[[ProviderTree, str], object]
) -> None:
    host = live_providers.add("host")
    tree = reporter.fetch(host)
    edit(tree, host)
    live_providers.set_traits("host", SSE)
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert (caught.value.status, caught.value.provider_uuid) == (409, host)
    assert caught.value.request_id is not None
    assert live_providers.traits("host") == {SSE}
    assert live_providers.generation("host") == 1, "nothing was written"


def test_aggregates_that_changed_without_a_new_generation_are_not_overwritten(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", aggregates=["mine"])
    tree = reporter.fetch(host)
    tree.remove_aggregates(host, live_providers.uuid("mine"))
    live_providers.set_aggregates_unseen("host", "mine", "theirs")
    assert live_providers.generation("host") == tree.data(host).generation
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == host
    assert live_providers.aggregates("host") == ["mine", "theirs"]


@one_server
def test_a_new_provider_that_another_writer_created_and_deleted_is_a_conflict(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = live_providers.add("host"), live_providers.uuid("child")
    tree = reporter.fetch(host)
    tree.new_child(live_providers.name("child"), host, child)
    tampering.before("POST *", lambda: live_providers.add("child", "host"))
    tampering.before(f"GET */{child}", lambda: live_providers.delete("child"))
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child


def test_a_class_that_another_client_deleted_fails_one_flush_and_not_the_next(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, pearls = live_providers.uuid("host"), live_providers.custom("PEARLS")

    def flush(total: int) -> None:
        tree = reporter.fetch(host)
        tree.update_inventory(host, {pearls: {"total": total}} if total else {})
        reporter.flush(host, tree)

    flush(1)
    flush(0)
    live_providers.send("DELETE", f"/resource_classes/{pearls}")
    with pytest.raises(ResourceProviderSyncFailed) as caught:
        flush(2)
    assert isinstance(caught.value.__cause__, ResourceProviderUpdateFailed)
    flush(2)
    assert live_providers.totals("host") == {pearls: 2}


# Outdated trees


@one_server
def test_a_flush_of_a_host_that_was_not_fetched_is_a_conflict(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    with pytest.raises(ResourceProviderUpdateConflict, match="fetch it again") as caught:
        reporter.flush(live_providers.uuid("host"), ProviderTree())
    assert caught.value.provider_uuid == live_providers.uuid("host")
    assert not transport.requests


@one_server
def test_a_tree_that_was_fetched_before_the_last_flush_is_refused(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.uuid("host")
    early, late = copy.deepcopy(reporter.fetch(host)), reporter.fetch(host)
    late.add_traits(host, AVX)
    reporter.flush(host, late)
    early.add_traits(host, SSE)
    transport.forget()
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, early)
    assert caught.value.provider_uuid == host
    assert not transport.requests
    assert live_providers.traits("host") == {AVX}


@one_server
def test_an_outdated_tree_does_not_delete_what_a_later_flush_created(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.uuid("host")
    early, late = reporter.fetch(host), reporter.fetch(host)
    late.new_child(live_providers.name("child"), host, live_providers.uuid("child"))
    reporter.flush(host, late)
    early.add_traits(host, AVX)
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(host, early)
    assert live_providers.exists("child")


@one_server
def test_an_outdated_tree_does_not_delete_what_another_writer_created(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host")
    early = reporter.fetch(host)
    live_providers.add("child", "host")
    reporter.forget(host)
    assert reporter.fetch(host).exists(live_providers.uuid("child"))
    early.add_traits(host, AVX)
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(host, early)
    assert live_providers.exists("child")
