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
    world: LiveProviders, reporter: Reporter
) -> None:
    host, child = world.uuid("host"), world.uuid("child")
    gold, pearls = world.custom("GOLD"), world.custom("PEARLS")
    tree = reporter.fetch(host)
    tree.new_child(world.name("child"), host, child)
    tree.update_inventory(child, {pearls: {"total": 7, "reserved": 7}})
    tree.add_traits(child, gold, AVX)
    tree.add_aggregates(child, world.uuid("agg"))
    reporter.flush(host, tree)
    assert world.provider("child")["parent_provider_uuid"] == host
    assert world.provider("child")["name"] == world.name("child")
    assert world.inventories("child")[pearls]["reserved"] == 7, "the whole total may be reserved"
    assert world.traits("child") == {gold, AVX}
    assert world.aggregates("child") == ["agg"]


@one_server
def test_the_generation_of_a_new_provider_is_written_into_the_tree(
    world: LiveProviders, reporter: Reporter
) -> None:
    host = world.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(world.name("child"), host)
    assert tree.data(child).generation is None
    reporter.flush(host, tree)
    assert tree.data(child).generation == 0


def test_a_new_provider_that_exists_already_is_read_and_keeps_its_associations(
    world: LiveProviders, reporter: Reporter
) -> None:
    host = world.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(world.name("child"), host, world.uuid("child"))
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    tree.add_traits(child, AVX)
    world.add("child", "host", traits=[AVX], aggregates=["agg"])
    reporter.flush(host, tree)
    assert world.totals("child") == {"VCPU": 8}
    known = reporter.fetch(host).data(child)
    assert (known.traits, known.aggregates) == ({AVX}, {world.uuid("agg")})
    assert known.generation == world.generation("child") == 3, "the traits needed no write"


def test_associations_that_another_writer_put_on_a_new_provider_are_not_overwritten(
    world: LiveProviders, reporter: Reporter
) -> None:
    host = world.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(world.name("child"), host, world.uuid("child"))
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    world.add("child", "host", totals={"VCPU": 4})
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child
    assert world.totals("child") == {"VCPU": 4}


@one_server
def test_a_root_that_another_host_has_reported_is_not_written_again(
    world: LiveProviders, reporter: Reporter
) -> None:
    disk = world.uuid("disk")
    for host in (world.uuid("one"), world.uuid("other")):
        tree = reporter.fetch(host)
        tree.add_aggregates(host, world.uuid("agg"))
        tree.new_root(world.name("disk"), disk)
        tree.update_inventory(disk, {"DISK_GB": {"total": 100}})
        tree.add_traits(disk, SHARES)
        tree.add_aggregates(disk, world.uuid("agg"))
        reporter.flush(host, tree)
    assert world.aggregates("other") == ["agg"]
    assert world.generation("disk") == 3, "the second host writes nothing to it"


def test_a_new_provider_that_exists_below_another_parent_is_refused(
    world: LiveProviders, reporter: Reporter
) -> None:
    host, child = world.uuid("host"), world.uuid("child")
    tree = reporter.fetch(host)
    tree.new_child(world.name("child"), host, child)
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    world.add("elsewhere")
    world.add("child", "elsewhere")
    with pytest.raises(ResourceProviderCreationFailed, match=world.uuid("elsewhere")) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child
    assert caught.value.request_id is not None
    assert world.totals("child") == {}


@one_server
def test_a_new_provider_with_a_name_of_another_provider_ends_the_flush(
    world: LiveProviders, reporter: Reporter
) -> None:
    world.add("other")
    host = world.uuid("host")
    tree = reporter.fetch(host)
    child = tree.new_child(world.name("other"), host)
    tree.add_traits(host, AVX)
    with pytest.raises(ResourceProviderCreationFailed) as caught:
        reporter.flush(host, tree)
    assert (caught.value.status, caught.value.provider_uuid) == (409, child)
    assert world.traits("host") == set(), "creations come first"


@one_server
def test_new_names_and_parents_of_known_providers_are_not_written(
    world: LiveProviders,
    reporter: Reporter,
    transport: CountingTransport,
    caplog: pytest.LogCaptureFixture,
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    grandchild = world.add("grandchild", "child")
    tree = reporter.fetch(host)
    tree.remove(grandchild)
    tree.new_child("renamed", host, grandchild, world.generation("grandchild"))
    transport.forget()
    with caplog.at_level(logging.WARNING):
        plan = reporter.flush(host, tree)
    assert not plan
    assert plan.lines() == [
        f"{world.name('grandchild')}: name stays {world.name('grandchild')} "
        "(not changed to renamed)",
        f"{world.name('grandchild')}: parent_uuid stays {child} (not changed to {host})",
    ]
    assert caplog.messages == plan.lines()
    assert not transport.requests


# Deleting


def test_removed_providers_are_deleted_and_a_missing_one_is_no_error(
    world: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    world.add("grandchild", "child")
    tree = reporter.fetch(host)
    tree.remove(child)
    world.delete("grandchild")
    transport.forget()
    reporter.flush(host, tree)
    assert not world.exists("child")
    assert world.in_words(transport.requests) == [
        *("GET grandchild", "DELETE grandchild"),
        *("GET child", "DELETE child"),
    ]
    transport.forget()
    assert reporter.fetch(host).get_provider_uuids() == [host]
    assert not transport.requests, "the cached tree has no deleted provider"


def test_a_removed_provider_in_use_stays(world: LiveProviders, reporter: Reporter) -> None:
    host, child = world.add("host"), world.add("child", "host", totals={"VCPU": 4})
    world.claim("vm", child={"VCPU": 1})
    tree = reporter.fetch(host)
    tree.remove(child)
    with pytest.raises(ResourceProviderSyncFailed) as caught:
        reporter.flush(host, tree)
    assert isinstance(caught.value.__cause__, ResourceProviderInUse)
    assert (caught.value.status, caught.value.provider_uuid) == (409, child)
    assert caught.value.request_id == caught.value.__cause__.request_id is not None
    assert world.totals("child") == {"VCPU": 4}


def test_a_removed_provider_that_another_writer_changed_stays(
    world: LiveProviders, reporter: Reporter
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    tree = reporter.fetch(host)
    tree.remove(child)
    world.set_totals("child", VCPU=4)
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.flush(host, tree)
    assert caught.value.provider_uuid == child
    assert world.totals("child") == {"VCPU": 4}


@one_server
def test_a_sharing_provider_that_a_driver_removes_is_deleted(
    world: LiveProviders, reporter: Reporter
) -> None:
    host = world.add("host", aggregates=["agg"])
    disk = world.add("disk", traits=[SHARES], aggregates=["agg"])
    tree = reporter.fetch(host)
    tree.remove(disk)
    reporter.flush(host, tree)
    assert not world.exists("disk")


@one_server
def test_a_flush_of_a_subtree_keeps_sharing_providers(
    world: LiveProviders, reporter: Reporter
) -> None:
    host, child = world.add("host", aggregates=["agg"]), world.add("child", "host")
    world.add("disk", traits=[SHARES], aggregates=["agg"])
    tree = reporter.fetch(host).subtree(host)
    tree.remove(child)
    tree.add_traits(host, AVX)
    reporter.flush(host, tree)
    assert world.exists("disk")
    assert not world.exists("child")
    assert world.traits("host") == {AVX}


@one_server
def test_a_flush_of_one_host_keeps_all_further_hosts(
    world: LiveProviders, reporter: Reporter
) -> None:
    one, other = world.add("one"), world.add("other")
    reporter.fetch(other)
    tree = reporter.fetch(one)
    tree.add_traits(one, AVX)
    reporter.flush(one, tree)
    assert world.exists("other")
    assert reporter.fetch(other).get_provider_uuids() == [other]


# Replacing


def test_an_inventory_field_that_a_driver_leaves_out_is_no_change(
    world: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 4})
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 4}})
    transport.forget()
    assert not reporter.flush(host, tree)
    assert not transport.requests


def test_a_changed_inventory_gets_defaults_for_fields_that_are_left_out(
    world: LiveProviders, reporter: Reporter
) -> None:
    host = world.uuid("host")
    for fields in ({"total": 4, "reserved": 1}, {"total": 8}):
        tree = reporter.fetch(host)
        tree.update_inventory(host, {"VCPU": fields})
        reporter.flush(host, tree)
    assert world.inventories("host")["VCPU"]["total"] == 8
    assert world.inventories("host")["VCPU"]["reserved"] == 0


def test_associations_are_removed_by_a_put_of_empty_ones(
    world: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 4}, traits=[AVX], aggregates=["agg"])
    tree = reporter.fetch(host)
    tree.update_inventory(host, {})
    tree.remove_traits(host, AVX)
    tree.remove_aggregates(host, world.uuid("agg"))
    transport.forget()
    reporter.flush(host, tree)
    writes = [f"PUT host/{what}" for what in ("inventories", "aggregates", "traits")]
    assert [text for text in world.in_words(transport.requests) if "GET" not in text] == writes
    assert (world.totals("host"), world.traits("host"), world.aggregates("host")) == (
        {},
        set(),
        [],
    )


def test_each_write_has_the_generation_of_the_answer_before(
    world: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = world.uuid("host")
    for total in (1, 2, 3):
        tree = reporter.fetch(host)
        tree.update_inventory(host, {"VCPU": {"total": total}})
        reporter.flush(host, tree)
    writes = [request.body for request in transport.requests if request.method == "PUT"]
    assert [body["resource_provider_generation"] for body in writes] == [0, 1, 2]
    assert reporter.fetch(host).data(host).generation == world.generation("host") == 3


def test_the_cached_tree_after_a_flush_equals_that_of_the_server(
    world: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = world.uuid("host")
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 8}})
    tree.add_traits(host, AVX)
    tree.add_aggregates(host, world.uuid("agg"))
    reporter.flush(host, tree)
    transport.forget()
    known = reporter.fetch(host).data(host)
    assert not transport.requests
    assert known == Reporter(transport).fetch(host).data(host)
    assert tree.data(host).generation == known.generation
    assert known.inventory["VCPU"]["reserved"] == 0, "the server adds the defaults"


def test_inventory_in_use_cannot_be_removed(world: LiveProviders, reporter: Reporter) -> None:
    host = world.add("host", totals={"VCPU": 4, "MEMORY_MB": 64})
    world.claim("vm", host={"VCPU": 1})
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"MEMORY_MB": {"total": 64}})
    with pytest.raises(InventoryInUse) as caught:
        reporter.flush(host, tree)
    assert (caught.value.status, caught.value.provider_uuid) == (409, host)
    assert "VCPU" in (caught.value.detail or "")
    assert caught.value.request_id is not None
    assert world.totals("host") == {"VCPU": 4, "MEMORY_MB": 64}
