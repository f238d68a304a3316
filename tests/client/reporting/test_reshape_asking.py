"""The allocations that a reshaping driver gets, and how it asks for them."""

from __future__ import annotations

from typing import cast

import pytest

from roost.client.drivers.driver import Driver
from roost.client.errors import ReshapeFailed, ReshapeNeeded
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from support.client.live_providers import LiveProviders
from support.stubs.scripted_drivers import ReshapingDriver, to_child
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

SHARES = "MISC_SHARES_VIA_AGGREGATE"
AVX = "HW_CPU_X86_AVX"


def test_a_driver_that_asks_for_a_reshape_moves_allocations_with_the_inventory(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8, "DISK_GB": 100})
    live_providers.claim("vm", host={"VCPU": 2, "DISK_GB": 10})
    driver = ReshapingDriver(to_child(live_providers))
    reporter.report(driver, live_providers.name("host"), host)
    assert live_providers.totals("host") == {"DISK_GB": 100}
    assert live_providers.totals("child") == {"VCPU": 8}
    assert live_providers.taken("vm") == {"host": {"DISK_GB": 10}, "child": {"VCPU": 2}}
    assert [given is None for given in driver.given] == [True, False]


def test_the_allocations_of_a_host_include_those_of_its_consumers_elsewhere(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8}, aggregates=["agg"])
    live_providers.add("child", "host", totals={"SRIOV_NET_VF": 4})
    live_providers.add("disk", totals={"DISK_GB": 100}, traits=[SHARES], aggregates=["agg"])
    live_providers.add("other", totals={"VCPU": 8})
    shares = live_providers.claim("shares", host={"VCPU": 1}, disk={"DISK_GB": 10})
    moves = live_providers.claim("moves", child={"SRIOV_NET_VF": 1}, other={"VCPU": 2})
    live_providers.claim("stranger", other={"VCPU": 1}, disk={"DISK_GB": 10})
    assert reporter.allocations(host) == {
        shares: live_providers.consumer("shares"),
        moves: live_providers.consumer("moves"),
    }
    assert live_providers.taken("shares").keys() == {"host", "disk"}
    assert live_providers.taken("moves").keys() == {"child", "other"}


class OldDriver:
    """A driver whose method lacks the parameter `allocations`."""

    def __init__(self, in_use: bool) -> None:
        self._in_use = in_use

    def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
        if self._in_use:
            raise ReshapeNeeded
        provider_tree.add_traits(nodename, AVX)


@one_server
def test_a_driver_without_the_parameter_reports_until_it_asks_for_a_reshape(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host")
    reporter.report(cast(Driver, OldDriver(in_use=False)), live_providers.name("host"), host)
    assert live_providers.traits("host") == {AVX}
    with pytest.raises(ReshapeFailed) as caught:
        reporter.report(cast(Driver, OldDriver(in_use=True)), live_providers.name("host"), host)
    signature = "update_provider_tree(self, provider_tree, nodename, allocations=None)"
    assert "OldDriver raised ReshapeNeeded" in str(caught.value)
    assert signature in str(caught.value)


class NamedAlike:
    """A module of another service, with an exception of the same name."""

    class ReshapeNeeded(Exception):
        pass


class Derived(NamedAlike.ReshapeNeeded):
    pass


@one_server
@pytest.mark.parametrize("asking", [ReshapeNeeded(), NamedAlike.ReshapeNeeded(), Derived()])
def test_a_driver_of_another_service_asks_with_its_own_exception(
    live_providers: LiveProviders, reporter: Reporter, asking: Exception
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    reporter.report(ReshapingDriver(to_child(live_providers), asking=asking), "host", host)
    assert live_providers.totals("child") == {"VCPU": 8}


@one_server
def test_edits_before_the_driver_asked_are_dropped(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    driver = ReshapingDriver(
        to_child(live_providers), before_asking=lambda tree: tree.add_traits(host, AVX)
    )
    reporter.report(driver, "host", host)
    assert live_providers.traits("host") == set()


@one_server
def test_the_exception_of_the_driver_is_raised_without_reshape(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    driver = ReshapingDriver(to_child(live_providers))
    with pytest.raises(ReshapeNeeded):
        reporter.report(
            driver, live_providers.name("host"), live_providers.uuid("host"), reshape=False
        )
    assert driver.given == [None]
    assert not transport.writes


@one_server
def test_a_driver_may_ask_for_a_host_that_does_not_exist(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.uuid("host")
    driver = ReshapingDriver(
        lambda tree, allocations: tree.update_inventory(host, {"VCPU": {"total": 8}})
    )
    reporter.report(driver, live_providers.name("host"), host)
    assert driver.allocations == [{}]
    assert live_providers.totals("host") == {"VCPU": 8}


def test_a_consumer_that_is_deleted_meanwhile_is_left_out(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    live_providers.claim("gone", host={"VCPU": 1})
    live_providers.claim("vm", host={"VCPU": 2})
    tampering.before("GET /allocations/*", lambda: live_providers.release("gone"))
    reporter.report(ReshapingDriver(to_child(live_providers)), "host", host)
    assert live_providers.taken("vm") == {"child": {"VCPU": 2}}


@one_server
def test_a_member_that_is_deleted_meanwhile_has_the_tree_read_again(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    live_providers.add("old", "host")
    reporter.fetch(host)
    live_providers.delete("old")
    reporter.report(ReshapingDriver(to_child(live_providers)), "host", host)
    assert live_providers.totals("child") == {"VCPU": 8}


@one_server
def test_a_member_that_is_created_meanwhile_is_not_deleted(
    live_providers: LiveProviders, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    reporter = Reporter(transport, refresh_seconds=1e-9)
    tree = reporter.fetch(host)
    live_providers.add("newcomer", "host")
    allocations = reporter.allocations(host)
    to_child(live_providers)(tree, allocations)
    reporter.flush(host, tree, allocations)
    assert live_providers.exists("newcomer")
    assert live_providers.totals("child") == {"VCPU": 8}
