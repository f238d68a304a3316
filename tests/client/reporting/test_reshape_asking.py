"""How a driver that has to reshape asks for the allocations, and which ones it gets."""

from __future__ import annotations

import pytest

from roost.client.errors import ReshapeNeeded
from roost.client.reporting.reporter import Reporter
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.scripted_drivers import ReshapingDriver, to_child
from support.tampering import TamperingTransport, one_server

SHARES = "MISC_SHARES_VIA_AGGREGATE"
AVX = "HW_CPU_X86_AVX"


def test_a_driver_that_asks_for_it_moves_allocations_with_the_inventory(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host", totals={"VCPU": 8, "DISK_GB": 100})
    world.claim("vm", host={"VCPU": 2, "DISK_GB": 10})
    driver = ReshapingDriver(to_child(world))
    reporter.report(driver, world.name("host"), host)
    assert world.totals("host") == {"DISK_GB": 100}
    assert world.totals("child") == {"VCPU": 8}
    assert world.taken("vm") == {"host": {"DISK_GB": 10}, "child": {"VCPU": 2}}
    assert [set(keywords) for keywords in driver.keywords] == [set(), {"allocations"}]


def test_the_allocations_are_all_that_the_users_of_the_host_have_anywhere(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host", totals={"VCPU": 8}, aggregates=["agg"])
    world.add("child", "host", totals={"SRIOV_NET_VF": 4})
    world.add("disk", totals={"DISK_GB": 100}, traits=[SHARES], aggregates=["agg"])
    world.add("other", totals={"VCPU": 8})
    shares = world.claim("shares", host={"VCPU": 1}, disk={"DISK_GB": 10})
    moves = world.claim("moves", child={"SRIOV_NET_VF": 1}, other={"VCPU": 2})
    world.claim("stranger", other={"VCPU": 1}, disk={"DISK_GB": 10})
    assert reporter.allocations(host) == {
        shares: world.consumer("shares"),
        moves: world.consumer("moves"),
    }
    assert world.taken("shares").keys() == {"host", "disk"}
    assert world.taken("moves").keys() == {"child", "other"}


class NamedAlike:
    """Where a class comes from that has the name but nothing else in common with ours."""

    class ReshapeNeeded(Exception):
        pass


class Derived(NamedAlike.ReshapeNeeded):
    pass


@one_server
@pytest.mark.parametrize("asking", [ReshapeNeeded(), NamedAlike.ReshapeNeeded(), Derived()])
def test_drivers_written_for_another_service_ask_with_its_exception(
    world: RemoteWorld, reporter: Reporter, asking: Exception
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    reporter.report(ReshapingDriver(to_child(world), asking=asking), "host", host)
    assert world.totals("child") == {"VCPU": 8}


@one_server
def test_what_a_driver_did_before_it_asked_is_forgotten(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    driver = ReshapingDriver(to_child(world), before_asking=lambda tree: tree.add_traits(host, AVX))
    reporter.report(driver, "host", host)
    assert world.traits("host") == set()


@one_server
def test_where_reshaping_is_not_wanted_the_asking_is_let_through(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    driver = ReshapingDriver(to_child(world))
    with pytest.raises(ReshapeNeeded):
        reporter.report(driver, world.name("host"), world.uuid("host"), reshape=False)
    assert driver.keywords == [{}]
    assert not transport.writes


@one_server
def test_a_driver_may_ask_for_a_host_that_is_not_there_yet(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.uuid("host")
    driver = ReshapingDriver(
        lambda tree, allocations: tree.update_inventory(host, {"VCPU": {"total": 8}})
    )
    reporter.report(driver, world.name("host"), host)
    assert driver.allocations == [{}]
    assert world.totals("host") == {"VCPU": 8}


def test_a_consumer_that_goes_while_allocations_are_collected_is_left_out(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    world.claim("gone", host={"VCPU": 1})
    world.claim("vm", host={"VCPU": 2})
    tampering.before("GET /allocations/*", lambda: world.release("gone"))
    reporter.report(ReshapingDriver(to_child(world)), "host", host)
    assert world.taken("vm") == {"child": {"VCPU": 2}}


@one_server
def test_a_member_that_is_gone_when_allocations_are_collected_is_read_about_again(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    world.add("old", "host")
    reporter.fetch(host)
    world.delete("old")
    reporter.report(ReshapingDriver(to_child(world)), "host", host)
    assert world.totals("child") == {"VCPU": 8}


@one_server
def test_a_member_that_comes_before_allocations_are_collected_is_not_deleted(
    world: RemoteWorld, transport: CountingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    reporter = Reporter(transport, refresh_seconds=1e-9)
    tree = reporter.fetch(host)
    world.add("newcomer", "host")
    allocations = reporter.allocations(host)
    to_child(world)(tree, allocations)
    reporter.flush(host, tree, allocations)
    assert world.exists("newcomer")
    assert world.totals("child") == {"VCPU": 8}
