"""Fetching the tree of a host: its root, its associations, its sharing providers."""

from __future__ import annotations

import json

import pytest

from roost.client.errors import (
    PlacementAPIConnectFailure,
    PlacementError,
    ResourceProviderAggregateRetrievalFailed,
    ResourceProviderCreationFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderTraitRetrievalFailed,
    ResourceProviderUpdateConflict,
    UnreadableAnswer,
)
from roost.client.placement import Placement
from roost.client.reading.cloud_reader import CloudReader
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementResponse
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import REQUEST_ID, TamperingTransport, one_server, refusal

SHARES = "MISC_SHARES_VIA_AGGREGATE"
POST = "POST /resource_providers"

# The root


def test_a_missing_host_is_created_and_nothing_is_read(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    uuid, name = live_providers.uuid("host"), live_providers.name("host")
    tree = reporter.fetch(uuid, name)
    assert live_providers.in_words(transport.requests) == [
        "GET /resource_providers?in_tree=host",
        POST,
    ]
    assert transport.requests[1].body == {"uuid": uuid, "name": name}
    assert tree.get_provider_uuids() == [uuid]
    assert tree.data(name).generation == 0
    assert live_providers.provider("host")["parent_provider_uuid"] is None


@one_server
def test_a_host_without_a_name_gets_its_uuid_as_name(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    uuid = live_providers.uuid("host")
    assert reporter.fetch(uuid).data(uuid).name == uuid
    assert live_providers.provider("host")["name"] == uuid


def test_a_host_with_a_parent_is_created_below_it_and_the_whole_tree_is_read(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    parent = live_providers.add("parent", totals={"VCPU": 4})
    uuid = live_providers.uuid("host")
    tree = reporter.fetch(uuid, live_providers.name("host"), parent)
    assert tree.get_provider_uuids() == [parent, uuid]
    assert tree.data(uuid).parent_uuid == parent
    assert tree.data(parent).inventory["VCPU"]["total"] == 4
    assert live_providers.provider("host")["parent_provider_uuid"] == parent


@one_server
def test_a_created_host_is_cached(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    uuid = live_providers.uuid("host")
    reporter.fetch(uuid)
    transport.forget()
    assert reporter.fetch(uuid).exists(uuid)
    assert not transport.requests


def test_a_host_that_another_writer_created_meanwhile_is_read(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    uuid = live_providers.uuid("host")
    tampering.before(POST, lambda: live_providers.add("host", totals={"VCPU": 4}))
    tree = reporter.fetch(uuid, live_providers.name("host"))
    assert tree.data(uuid).inventory["VCPU"]["total"] == 4
    assert tree.data(uuid).generation == 1


@one_server
def test_a_host_that_another_writer_created_and_deleted_meanwhile_is_an_error(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    def create_and_delete() -> None:
        live_providers.add("host")
        tampering.before("GET /resource_providers?in_tree=*", lambda: live_providers.delete("host"))

    tampering.before(POST, create_and_delete)
    with pytest.raises(ResourceProviderCreationFailed) as caught:
        reporter.fetch(live_providers.uuid("host"), live_providers.name("host"))
    assert caught.value.provider_uuid == live_providers.uuid("host")


def test_a_name_that_another_provider_has_is_a_failed_creation(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    live_providers.add("other")
    with pytest.raises(ResourceProviderCreationFailed) as caught:
        reporter.fetch(live_providers.uuid("host"), live_providers.name("other"))
    assert caught.value.status == 409
    assert f"Conflicting resource provider name: {live_providers.name('other')}" in str(
        caught.value
    )
    assert caught.value.request_id is not None
    assert caught.value.provider_uuid == live_providers.uuid("host")


@one_server
def test_a_lost_creation_is_found_by_its_uuid_if_the_server_complains_about_the_name(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    name = live_providers.name("host")
    tampering.answer(
        POST, refusal(409, f"Conflicting resource provider name: {name} already exists.")
    )
    live_providers.add("host")
    uuid = live_providers.uuid("host")
    tampering.answer(
        "GET /resource_providers?in_tree=*",
        PlacementResponse(200, content=b'{"resource_providers": []}'),
    )
    assert reporter.fetch(uuid, name).exists(uuid)


@one_server
def test_a_refused_creation_of_the_host_is_a_failed_creation(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    tampering.answer(POST, refusal(500, "out of order"))
    with pytest.raises(ResourceProviderCreationFailed, match="out of order") as caught:
        reporter.fetch(live_providers.uuid("host"))
    _check(caught.value, 500, live_providers.uuid("host"))


@one_server
def test_a_missing_connection_is_no_failed_creation(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    error = PlacementAPIConnectFailure("connection refused")
    tampering.fail(POST, error)
    with pytest.raises(PlacementAPIConnectFailure) as caught:
        reporter.fetch(live_providers.uuid("host"))
    assert caught.value is error


# Reads


def test_each_read_has_the_oldest_version_that_serves_its_purpose(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    live_providers.add("host", aggregates=["agg"])
    reporter.fetch(live_providers.uuid("host"))
    asked = dict(
        zip(
            live_providers.in_words(transport.requests),
            (request.version for request in transport.requests),
            strict=True,
        )
    )
    assert asked == {
        "GET /resource_providers?in_tree=host": "1.14",
        "GET host/inventories": None,
        "GET host/aggregates": "1.19",
        "GET host/traits": "1.6",
        f"GET /resource_providers?member_of=in:agg&required={SHARES}": "1.18",
    }
    assert all(request.repeatable for request in transport.requests)


def test_reads_of_a_provider_that_changes_in_between_are_repeated(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    uuid = live_providers.add("host", totals={"VCPU": 4})

    def change_all() -> None:
        live_providers.set_totals("host", VCPU=8)
        live_providers.set_traits("host", "HW_CPU_X86_AVX")

    tampering.before("GET */aggregates", change_all)
    tree = reporter.fetch(uuid)
    assert tree.data(uuid).inventory["VCPU"]["total"] == 8
    assert tree.data(uuid).traits == {"HW_CPU_X86_AVX"}
    assert tree.data(uuid).generation == live_providers.generation("host")
    reads = ["GET host/inventories", "GET host/aggregates", "GET host/traits"]
    assert live_providers.in_words(transport.requests)[1:] == reads * 2


@one_server
def test_a_provider_that_changes_in_all_attempts_gets_the_oldest_generation(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    uuid = live_providers.add("host", totals={"VCPU": 1})
    totals = iter(range(2, 10))
    tampering.before(
        "GET */traits", lambda: live_providers.set_totals("host", VCPU=next(totals)), times=4
    )
    tree = reporter.fetch(uuid)
    assert live_providers.in_words(transport.requests).count("GET host/inventories") == 4, "bounded"
    assert tree.data(uuid).inventory["VCPU"]["total"] == 4
    assert tree.data(uuid).generation == live_providers.generation("host") - 1
    tree.add_traits(uuid, "HW_CPU_X86_AVX")
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(uuid, tree)
    assert live_providers.totals("host") == {"VCPU": 5}


def test_a_member_that_is_deleted_during_the_read_is_a_conflict(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    tampering.before(f"GET */{child}/aggregates", lambda: live_providers.delete("child"))
    with pytest.raises(ResourceProviderUpdateConflict) as caught:
        reporter.fetch(host)
    assert caught.value.provider_uuid == child
    assert isinstance(caught.value.__cause__, ResourceProviderAggregateRetrievalFailed)
    assert reporter.fetch(host).get_provider_uuids() == [host]


@one_server
@pytest.mark.parametrize(
    ("request_", "expected", "about_host"),
    [
        ("GET */resource_providers?in_tree=*", ResourceProviderRetrievalFailed, True),
        ("GET */inventories", ResourceProviderRetrievalFailed, True),
        ("GET */aggregates", ResourceProviderAggregateRetrievalFailed, True),
        ("GET */traits", ResourceProviderTraitRetrievalFailed, True),
        ("GET */resource_providers?member_of=*", ResourceProviderRetrievalFailed, False),
    ],
)
def test_a_refused_read_ends_the_fetch_and_nothing_is_cached(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    *,
    request_: str,
    expected: type[PlacementError],
    about_host: bool,
) -> None:
    uuid = live_providers.add("host", totals={"VCPU": 4}, aggregates=["agg"])
    tampering.answer(request_, refusal(500, "out of order"))
    with pytest.raises(expected, match="out of order") as caught:
        reporter.fetch(uuid)
    assert type(caught.value) is expected
    _check(caught.value, 500, uuid if about_host else None)
    assert reporter.fetch(uuid).has_inventory(uuid)


@one_server
@pytest.mark.parametrize("body", ["<html>", "{}", '{"resource_providers": ["host"]}'])
def test_a_list_that_no_placement_server_sends_is_an_unreadable_answer(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport, body: str
) -> None:
    answer = PlacementResponse(200, {"x-openstack-request-id": REQUEST_ID}, body.encode())
    tampering.answer("GET /resource_providers?in_tree=*", answer)
    with pytest.raises(UnreadableAnswer) as caught:
        reporter.fetch(live_providers.uuid("host"))
    _check(caught.value, 200, None)


@one_server
@pytest.mark.parametrize("missing", ["uuid", "name", "generation", "parent_provider_uuid"])
def test_a_listed_provider_without_a_field_is_an_unreadable_answer(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport, missing: str
) -> None:
    live_providers.add("host")
    listed = {
        key: value for key, value in live_providers.provider("host").items() if key != missing
    }
    answer = PlacementResponse(200, content=json.dumps({"resource_providers": [listed]}).encode())
    tampering.answer("GET /resource_providers?in_tree=*", answer)
    with pytest.raises(UnreadableAnswer):
        reporter.fetch(live_providers.uuid("host"))


def _check(error: PlacementError, status: int, provider_uuid: str | None) -> None:
    assert (error.status, error.request_id) == (status, REQUEST_ID)
    assert error.provider_uuid == provider_uuid


# Sharing providers


def test_only_sharing_providers_of_the_tree_itself_are_read(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    live_providers.add("host", aggregates=["near"])
    live_providers.add("neighbour", aggregates=["near"])
    live_providers.add("disk", traits=[SHARES], aggregates=["near", "far"])
    live_providers.add("drawer", "disk", totals={"DISK_GB": 10})
    live_providers.add("partner", traits=[SHARES], aggregates=["far"])
    tree = reporter.fetch(live_providers.uuid("host"))
    assert live_providers.shorts(tree.get_provider_uuids()) == ["disk", "host"]
    asked = [text for text in map(str, transport.requests) if "member_of" in text]
    assert len(asked) == 1


def test_one_request_has_the_aggregates_of_all_members(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    live_providers.add("host", aggregates=["agg1"])
    live_providers.add("child", "host", aggregates=["agg1", "agg2"])
    live_providers.add("disk", traits=[SHARES], aggregates=["agg2"])
    tree = reporter.fetch(live_providers.uuid("host"))
    assert live_providers.shorts(tree.get_provider_uuids()) == ["child", "disk", "host"]
    (asked,) = [text for text in map(str, transport.requests) if "member_of" in text]
    listed = asked.partition("member_of=in:")[2].partition("&")[0].split(",")
    assert live_providers.shorts(listed) == ["agg1", "agg2"]


@one_server
def test_many_aggregates_need_several_requests(
    live_providers: LiveProviders, transport: CountingTransport
) -> None:
    live_providers.add("host", aggregates=["agg1", "agg2", "agg3"])
    live_providers.add("disk", traits=[SHARES], aggregates=["agg1", "agg3"])
    live_providers.add("link", traits=[SHARES], aggregates=["agg2"])
    reader = CloudReader(Placement(transport, aggregates_per_request=2))
    tree = reader.tree(live_providers.uuid("host"))
    assert live_providers.shorts(tree.get_provider_uuids()) == ["disk", "host", "link"]
    assert sum("member_of" in str(request) for request in transport.requests) == 2


# The cache


@one_server
def test_each_host_has_a_cached_tree_of_its_own(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    one, other = live_providers.uuid("one"), live_providers.uuid("other")
    reporter.fetch(one)
    assert reporter.fetch(other).get_provider_uuids() == [other]
    assert reporter.fetch(one).get_provider_uuids() == [one]
    transport.forget()
    reporter.forget(one)
    reporter.fetch(other)
    assert not transport.requests
    reporter.fetch(one)
    assert transport.requests, "a forgotten tree is read again"


@one_server
def test_forget_without_a_host_forgets_all_hosts(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    hosts = [live_providers.uuid("one"), live_providers.uuid("other")]
    for host in hosts:
        reporter.fetch(host)
    transport.forget()
    reporter.forget()
    for host in hosts:
        reporter.fetch(host)
    asked = [text for text in live_providers.in_words(transport.requests) if "in_tree" in text]
    assert asked == [f"GET /resource_providers?in_tree={short}" for short in ("one", "other")]
