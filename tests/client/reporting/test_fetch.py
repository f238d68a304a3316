"""Fetching a host's tree: how its root is ensured, what is read, and what bad answers become."""

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
from roost.client.reporting.placement import Placement
from roost.client.reporting.reading import TreeReader
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Response
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.tampering import REQUEST_ID, TamperingTransport, one_server, refusal

SHARES = "MISC_SHARES_VIA_AGGREGATE"
POST = "POST /resource_providers"

# The root


def test_a_host_that_is_not_there_is_created_and_nothing_is_read(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    uuid, name = world.uuid("host"), world.name("host")
    tree = reporter.fetch(uuid, name)
    assert world.in_words(transport.requests) == ["GET /resource_providers?in_tree=host", POST]
    assert transport.requests[1].body == {"uuid": uuid, "name": name}
    assert tree.get_provider_uuids() == [uuid]
    assert tree.data(name).generation == 0
    assert world.provider("host")["parent_provider_uuid"] is None


@one_server
def test_a_host_without_a_name_is_named_by_its_uuid(world: RemoteWorld, reporter: Reporter) -> None:
    uuid = world.uuid("host")
    assert reporter.fetch(uuid).data(uuid).name == uuid
    assert world.provider("host")["name"] == uuid


def test_a_root_with_a_parent_is_created_below_it_and_comes_with_the_whole_tree(
    world: RemoteWorld, reporter: Reporter
) -> None:
    parent = world.add("parent", totals={"VCPU": 4})
    uuid = world.uuid("host")
    tree = reporter.fetch(uuid, world.name("host"), parent)
    assert tree.get_provider_uuids() == [parent, uuid]
    assert tree.data(uuid).parent_uuid == parent
    assert tree.data(parent).inventory["VCPU"]["total"] == 4
    assert world.provider("host")["parent_provider_uuid"] == parent


@one_server
def test_what_was_created_is_known_from_then_on(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    uuid = world.uuid("host")
    reporter.fetch(uuid)
    transport.forget()
    assert reporter.fetch(uuid).exists(uuid)
    assert not transport.requests


def test_a_uuid_that_somebody_else_created_just_now_is_read(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    uuid = world.uuid("host")
    tampering.before(POST, lambda: world.add("host", totals={"VCPU": 4}))
    tree = reporter.fetch(uuid, world.name("host"))
    assert tree.data(uuid).inventory["VCPU"]["total"] == 4
    assert tree.data(uuid).generation == 1


@one_server
def test_a_uuid_that_was_there_just_now_and_is_not_is_no_success(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    def come_and_go() -> None:
        world.add("host")
        tampering.before("GET /resource_providers?in_tree=*", lambda: world.delete("host"))

    tampering.before(POST, come_and_go)
    with pytest.raises(ResourceProviderCreationFailed) as caught:
        reporter.fetch(world.uuid("host"), world.name("host"))
    assert caught.value.provider_uuid == world.uuid("host")


def test_a_name_that_is_taken_is_a_failure_and_not_somebody_who_was_faster(
    world: RemoteWorld, reporter: Reporter
) -> None:
    world.add("other")
    with pytest.raises(ResourceProviderCreationFailed) as caught:
        reporter.fetch(world.uuid("host"), world.name("other"))
    assert caught.value.status == 409
    assert f"Conflicting resource provider name: {world.name('other')}" in str(caught.value)
    assert caught.value.request_id is not None
    assert caught.value.provider_uuid == world.uuid("host")


@one_server
def test_any_other_refusal_of_the_root_is_a_failed_creation(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    tampering.answer(POST, refusal(500, "out of order"))
    with pytest.raises(ResourceProviderCreationFailed, match="out of order") as caught:
        reporter.fetch(world.uuid("host"))
    _check(caught.value, 500, world.uuid("host"))


@one_server
def test_a_root_that_nobody_listened_to_is_no_failed_creation(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    error = PlacementAPIConnectFailure("nobody listens")
    tampering.fail(POST, error)
    with pytest.raises(PlacementAPIConnectFailure) as caught:
        reporter.fetch(world.uuid("host"))
    assert caught.value is error


# What is read


def test_each_call_asks_for_the_oldest_version_that_will_do(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    world.add("host", aggregates=["agg"])
    reporter.fetch(world.uuid("host"))
    asked = dict(
        zip(
            world.in_words(transport.requests),
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


def test_reads_of_a_provider_between_which_somebody_wrote_are_repeated(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    uuid = world.add("host", totals={"VCPU": 4})

    def move_everything() -> None:
        world.set_totals("host", VCPU=8)
        world.set_traits("host", "HW_CPU_X86_AVX")

    tampering.before("GET */aggregates", move_everything)
    tree = reporter.fetch(uuid)
    assert tree.data(uuid).inventory["VCPU"]["total"] == 8
    assert tree.data(uuid).traits == {"HW_CPU_X86_AVX"}
    assert tree.data(uuid).generation == world.generation("host")
    reads = ["GET host/inventories", "GET host/aggregates", "GET host/traits"]
    assert world.in_words(transport.requests)[1:] == reads * 2


@one_server
def test_of_a_provider_that_never_rests_the_oldest_generation_is_kept(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    uuid = world.add("host", totals={"VCPU": 1})
    totals = iter(range(2, 10))
    tampering.before("GET */traits", lambda: world.set_totals("host", VCPU=next(totals)), times=4)
    tree = reporter.fetch(uuid)
    assert world.in_words(transport.requests).count("GET host/inventories") == 4, "bounded"
    assert tree.data(uuid).inventory["VCPU"]["total"] == 4
    assert tree.data(uuid).generation == world.generation("host") - 1
    tree.add_traits(uuid, "HW_CPU_X86_AVX")
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(uuid, tree)
    assert world.totals("host") == {"VCPU": 5}


def test_a_member_that_goes_while_it_is_read_is_a_conflict(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    tampering.before(f"GET */{child}/aggregates", lambda: world.delete("child"))
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
def test_a_read_that_is_refused_ends_the_fetch_and_nothing_is_kept(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    *,
    request_: str,
    expected: type[PlacementError],
    about_host: bool,
) -> None:
    uuid = world.add("host", totals={"VCPU": 4}, aggregates=["agg"])
    tampering.answer(request_, refusal(500, "out of order"))
    with pytest.raises(expected, match="out of order") as caught:
        reporter.fetch(uuid)
    assert type(caught.value) is expected
    _check(caught.value, 500, uuid if about_host else None)
    assert reporter.fetch(uuid).has_inventory(uuid)


@one_server
@pytest.mark.parametrize("listing", ["<html>", "{}", '{"resource_providers": ["host"]}'])
def test_a_listing_that_no_placement_server_sends_is_named_as_such(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport, listing: str
) -> None:
    answer = Response(200, {"x-openstack-request-id": REQUEST_ID}, listing.encode())
    tampering.answer("GET /resource_providers?in_tree=*", answer)
    with pytest.raises(UnreadableAnswer) as caught:
        reporter.fetch(world.uuid("host"))
    _check(caught.value, 200, None)


@one_server
@pytest.mark.parametrize("missing", ["uuid", "name", "generation", "parent_provider_uuid"])
def test_a_listed_provider_lacks_nothing_that_will_be_asked_of_it(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport, missing: str
) -> None:
    world.add("host")
    listed = {key: value for key, value in world.provider("host").items() if key != missing}
    answer = Response(200, content=json.dumps({"resource_providers": [listed]}).encode())
    tampering.answer("GET /resource_providers?in_tree=*", answer)
    with pytest.raises(UnreadableAnswer):
        reporter.fetch(world.uuid("host"))


def _check(error: PlacementError, status: int, provider_uuid: str | None) -> None:
    assert (error.status, error.request_id) == (status, REQUEST_ID)
    assert error.provider_uuid == provider_uuid


# Who shares


def test_partners_of_partners_and_those_who_do_not_share_stay_out(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    world.add("host", aggregates=["near"])
    world.add("neighbour", aggregates=["near"])
    world.add("disk", traits=[SHARES], aggregates=["near", "far"])
    world.add("drawer", "disk", totals={"DISK_GB": 10})
    world.add("partner", traits=[SHARES], aggregates=["far"])
    tree = reporter.fetch(world.uuid("host"))
    assert world.shorts(tree.get_provider_uuids()) == ["disk", "host"]
    asked = [text for text in map(str, transport.requests) if "member_of" in text]
    assert len(asked) == 1


def test_the_aggregates_of_all_members_are_asked_for_at_once(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    world.add("host", aggregates=["agg1"])
    world.add("child", "host", aggregates=["agg1", "agg2"])
    world.add("disk", traits=[SHARES], aggregates=["agg2"])
    tree = reporter.fetch(world.uuid("host"))
    assert world.shorts(tree.get_provider_uuids()) == ["child", "disk", "host"]
    (asked,) = [text for text in map(str, transport.requests) if "member_of" in text]
    listed = asked.partition("member_of=in:")[2].partition("&")[0].split(",")
    assert world.shorts(listed) == ["agg1", "agg2"]


@one_server
def test_more_aggregates_than_a_request_has_room_for_take_several(
    world: RemoteWorld, transport: CountingTransport
) -> None:
    world.add("host", aggregates=["agg1", "agg2", "agg3"])
    world.add("disk", traits=[SHARES], aggregates=["agg1", "agg3"])
    world.add("link", traits=[SHARES], aggregates=["agg2"])
    reader = TreeReader(Placement(transport, aggregates_per_request=2))
    tree = reader.read(world.uuid("host"))
    assert world.shorts(tree.get_provider_uuids()) == ["disk", "host", "link"]
    assert sum("member_of" in str(request) for request in transport.requests) == 2


# What is kept


@one_server
def test_each_host_has_a_forest_of_its_own(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    one, other = world.uuid("one"), world.uuid("other")
    reporter.fetch(one)
    assert reporter.fetch(other).get_provider_uuids() == [other]
    assert reporter.fetch(one).get_provider_uuids() == [one]
    transport.forget()
    reporter.forget(one)
    reporter.fetch(other)
    assert not transport.requests
    reporter.fetch(one)
    assert transport.requests, "what was forgotten is read again"


@one_server
def test_all_hosts_can_be_forgotten_at_once(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    hosts = [world.uuid("one"), world.uuid("other")]
    for host in hosts:
        reporter.fetch(host)
    transport.forget()
    reporter.forget()
    for host in hosts:
        reporter.fetch(host)
    asked = [text for text in world.in_words(transport.requests) if "in_tree" in text]
    assert asked == [f"GET /resource_providers?in_tree={short}" for short in ("one", "other")]
