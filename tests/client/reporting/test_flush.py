"""Flushing a tree: creations, deletions and replacements on the server."""

from __future__ import annotations

import logging

import pytest

from roost.client.errors import (
    InventoryInUse,
    ResourceProviderCreationFailed,
    ResourceProviderInUse,
    ResourceProviderSyncFailed,
    ResourceProviderUpdateConflict,
)
from roost.client.reporting.reporter import Reporter
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import one_server

SHARES = "MISC_SHARES_VIA_AGGREGATE"
AVX = "HW_CPU_X86_AVX"

# Creating


def test_new_providers_are_created_with_their_associations(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, child = live_providers.uuid("host"), live_providers.uuid("child")
    gold, pearls = live_providers.custom("GOLD"), live_providers.custom("PEARLS")
    tree = reporter.fetch(host)
    tree.new_child(live_providers.name("child"), host, child)
    tree.update_inventory(child, {pearls: {"total": 7, "reserved": 7}})
    tree.add_traits(child, gold, AVX)
    tree.add_aggregates(child, live_providers.uuid("agg"))
    reporter.flush(host, tree)
    assert live_providers.provider("child")["parent_provider_uuid"] == host
    assert live_providers.provider("child")["name"] == live_providers.name("child")
    assert live_providers.inventories("child")[pearls]["reserved"] == 7, (
        "the whole total may be reserved"
    )
    assert live_providers.traits("child") == {gold, AVX}
    assert live_providers.aggregates("child") == ["agg"]


@one_server
def test_the_generation_of_a_new_provider_is_written_into_the_tree(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(live_providers.name("child"), host)
    assert tree.data(child).generation is None
    reporter.flush(host, tree)
    assert tree.data(child).generation == 0


def test_a_new_provider_that_exists_already_is_read_and_keeps_its_associations(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(live_providers.name("child"), host, live_providers.uuid("child"))
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    tree.add_traits(child, AVX)
    live_providers.add("child", "host", traits=[AVX], aggregates=["agg"])
    reporter.flush(host, tree)
    assert live_providers.totals("child") == {"VCPU": 8}
    known = reporter.fetch(host).data(child)
    assert (known.traits, known.aggregates) == ({AVX}, {live_providers.uuid("agg")})
    assert known.generation == live_providers.generation("child") == 3, "the traits needed no write"


def test_associations_that_another_writer_put_on_a_new_provider_are_not_overwritten(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(live_providers.name("child"), host, live_providers.uuid("child"))
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    live_providers.add("child", "host", totals={"VCPU": 4})
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child
    assert live_providers.totals("child") == {"VCPU": 4}


@one_server
def test_a_root_that_another_host_has_reported_is_not_written_again(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    disk = live_providers.uuid("disk")
    for host in (live_providers.uuid("one"), live_providers.uuid("other")):
        tree = reporter.fetch(host)
        tree.add_aggregates(host, live_providers.uuid("agg"))
        tree.new_root(live_providers.name("disk"), disk)
        tree.update_inventory(disk, {"DISK_GB": {"total": 100}})
        tree.add_traits(disk, SHARES)
        tree.add_aggregates(disk, live_providers.uuid("agg"))
        reporter.flush(host, tree)
    assert live_providers.aggregates("other") == ["agg"]
    assert live_providers.generation("disk") == 3, "the second host writes nothing to it"


def test_a_new_provider_that_exists_below_another_parent_is_refused(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, child = live_providers.uuid("host"), live_providers.uuid("child")
    tree = reporter.fetch(host)
    tree.new_child(live_providers.name("child"), host, child)
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    live_providers.add("elsewhere")
    live_providers.add("child", "elsewhere")
    with pytest.raises(
        ResourceProviderCreationFailed, match=live_providers.uuid("elsewhere")
    ) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child
    assert caught.value.request_id is not None
    assert live_providers.totals("child") == {}


@one_server
def test_a_new_provider_with_a_name_of_another_provider_ends_the_flush(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    live_providers.add("other")
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(live_providers.name("other"), host)
    tree.add_traits(host, AVX)
    with pytest.raises(ResourceProviderCreationFailed) as caught:
        reporter.flush(host, tree)
    assert (caught.value.status, caught.value.provider_uuid) == (409, child)
    assert live_providers.traits("host") == set(), "creations come first"


@one_server
def test_new_names_and_parents_of_known_providers_are_not_written(
    live_providers: LiveProviders,
    reporter: Reporter,
    transport: CountingTransport,
    caplog: pytest.LogCaptureFixture,
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    grandchild = live_providers.add("grandchild", "child")
    tree = reporter.fetch(host)
    tree.remove(grandchild)
    tree.new_child("renamed", host, grandchild, live_providers.generation("grandchild"))
    transport.forget()
    with caplog.at_level(logging.WARNING):
        plan = reporter.flush(host, tree)
    assert not plan
    assert plan.lines() == [
        f"{live_providers.name('grandchild')}: name stays {live_providers.name('grandchild')} "
        "(not changed to renamed)",
        f"{live_providers.name('grandchild')}: parent_uuid stays {child} (not changed to {host})",
    ]
    assert caplog.messages == plan.lines()
    assert not transport.requests


# Deleting


def test_removed_providers_are_deleted_and_a_missing_one_is_no_error(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    live_providers.add("grandchild", "child")
    tree = reporter.fetch(host)
    tree.remove(child)
    live_providers.delete("grandchild")
    transport.forget()
    reporter.flush(host, tree)
    assert not live_providers.exists("child")
    assert live_providers.in_words(transport.requests) == [
        *("GET grandchild", "DELETE grandchild"),
        *("GET child", "DELETE child"),
    ]
    transport.forget()
    assert reporter.fetch(host).get_provider_uuids() == [host]
    assert not transport.requests, "the cached tree has no deleted provider"


def test_a_removed_provider_in_use_stays(live_providers: LiveProviders, reporter: Reporter) -> None:
    host, child = (
        live_providers.add("host"),
        live_providers.add("child", "host", totals={"VCPU": 4}),
    )
    live_providers.claim("vm", child={"VCPU": 1})
    tree = reporter.fetch(host)
    tree.remove(child)
    with pytest.raises(ResourceProviderSyncFailed) as caught:
        reporter.flush(host, tree)
    assert isinstance(caught.value.__cause__, ResourceProviderInUse)
    assert (caught.value.status, caught.value.provider_uuid) == (409, child)
    assert caught.value.request_id == caught.value.__cause__.request_id is not None
    assert live_providers.totals("child") == {"VCPU": 4}


def test_a_removed_provider_that_another_writer_changed_stays(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    tree = reporter.fetch(host)
    tree.remove(child)
    live_providers.set_totals("child", VCPU=4)
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child
    assert live_providers.totals("child") == {"VCPU": 4}


@one_server
def test_a_sharing_provider_that_a_driver_removes_is_deleted(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", aggregates=["agg"])
    disk = live_providers.add("disk", traits=[SHARES], aggregates=["agg"])
    tree = reporter.fetch(host)
    tree.remove(disk)
    reporter.flush(host, tree)
    assert not live_providers.exists("disk")


@one_server
def test_a_flush_of_a_subtree_keeps_sharing_providers(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host, child = (
        live_providers.add("host", aggregates=["agg"]),
        live_providers.add("child", "host"),
    )
    live_providers.add("disk", traits=[SHARES], aggregates=["agg"])
    tree = reporter.fetch(host).subtree(host)
    tree.remove(child)
    tree.add_traits(host, AVX)
    reporter.flush(host, tree)
    assert live_providers.exists("disk")
    assert not live_providers.exists("child")
    assert live_providers.traits("host") == {AVX}


@one_server
def test_a_flush_of_one_host_keeps_all_further_hosts(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    one, other = live_providers.add("one"), live_providers.add("other")
    reporter.fetch(other)
    tree = reporter.fetch(one)
    tree.add_traits(one, AVX)
    reporter.flush(one, tree)
    assert live_providers.exists("other")
    assert reporter.fetch(other).get_provider_uuids() == [other]


# Replacing


def test_an_inventory_field_that_a_driver_leaves_out_is_no_change(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4})
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 4}})
    transport.forget()
    assert not reporter.flush(host, tree)
    assert not transport.requests


def test_a_changed_inventory_gets_defaults_for_fields_that_are_left_out(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.uuid("host")
    for fields in ({"total": 4, "reserved": 1}, {"total": 8}):
        tree = reporter.fetch(host)
        tree.update_inventory(host, {"VCPU": fields})
        reporter.flush(host, tree)
    assert live_providers.inventories("host")["VCPU"]["total"] == 8
    assert live_providers.inventories("host")["VCPU"]["reserved"] == 0


def test_associations_are_removed_by_a_put_of_empty_ones(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4}, traits=[AVX], aggregates=["agg"])
    tree = reporter.fetch(host)
    tree.update_inventory(host, {})
    tree.remove_traits(host, AVX)
    tree.remove_aggregates(host, live_providers.uuid("agg"))
    transport.forget()
    reporter.flush(host, tree)
    writes = [f"PUT host/{what}" for what in ("inventories", "aggregates", "traits")]
    assert [
        text for text in live_providers.in_words(transport.requests) if "GET" not in text
    ] == writes
    assert (
        live_providers.totals("host"),
        live_providers.traits("host"),
        live_providers.aggregates("host"),
    ) == (
        {},
        set(),
        [],
    )


def test_each_write_has_the_generation_of_the_answer_before(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.uuid("host")
    for total in (1, 2, 3):
        tree = reporter.fetch(host)
        tree.update_inventory(host, {"VCPU": {"total": total}})
        reporter.flush(host, tree)
    writes = [request.body for request in transport.requests if request.method == "PUT"]
    assert [body["resource_provider_generation"] for body in writes] == [0, 1, 2]
    assert reporter.fetch(host).data(host).generation == live_providers.generation("host") == 3


def test_the_cached_tree_after_a_flush_equals_that_of_the_server(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.uuid("host")
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 8}})
    tree.add_traits(host, AVX)
    tree.add_aggregates(host, live_providers.uuid("agg"))
    reporter.flush(host, tree)
    transport.forget()
    known = reporter.fetch(host).data(host)
    assert not transport.requests
    assert known == Reporter(transport).fetch(host).data(host)
    assert tree.data(host).generation == known.generation
    assert known.inventory["VCPU"]["reserved"] == 0, "the server adds the defaults"


def test_inventory_in_use_cannot_be_removed(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4, "MEMORY_MB": 64})
    live_providers.claim("vm", host={"VCPU": 1})
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"MEMORY_MB": {"total": 64}})
    with pytest.raises(InventoryInUse) as caught:
        reporter.flush(host, tree)
    assert (caught.value.status, caught.value.provider_uuid) == (409, host)
    assert "VCPU" in (caught.value.detail or "")
    assert caught.value.request_id is not None
    assert live_providers.totals("host") == {"VCPU": 4, "MEMORY_MB": 64}
