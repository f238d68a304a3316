"""What a flush is about: what was fetched and edited, and nothing that came since."""

from __future__ import annotations

import pytest

from roost.client.drivers.driver import Allocations
from roost.client.errors import ResourceProviderUpdateConflict
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.scripted_drivers import EditingDriver, ReshapingDriver, to_child
from support.tampering import TamperingTransport, one_server, refusal

SHARES = "MISC_SHARES_VIA_AGGREGATE"
AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"


def test_a_subtree_says_nothing_about_those_who_share_with_it(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host", totals={"VCPU": 8}, aggregates=["agg"])
    world.add("pool", totals={"DISK_GB": 100}, traits=[SHARES], aggregates=["agg"])
    subtree = reporter.fetch(host).subtree(host)
    subtree.add_traits(host, AVX)
    reporter.flush(host, subtree)
    assert world.exists("pool")
    assert world.traits("host") == {AVX}


@one_server
def test_what_others_created_since_the_tree_was_fetched_is_not_deleted(
    world: RemoteWorld, transport: CountingTransport
) -> None:
    now = 0.0
    reporter = Reporter(transport, clock=lambda: now)
    host = world.add("host")
    tree = reporter.fetch(host)
    world.add("child", "host")
    now = 301.0
    reporter.fetch(host)
    with pytest.raises(ResourceProviderUpdateConflict):
        reporter.flush(host, tree)
    assert world.exists("child")


@one_server
def test_collecting_allocations_does_not_change_what_a_flush_compares_with(
    world: RemoteWorld, transport: CountingTransport
) -> None:
    now = 0.0
    reporter = Reporter(transport, clock=lambda: now)
    host = world.add("host")
    tree = reporter.fetch(host)
    world.add("child", "host")
    now = 301.0
    reporter.allocations(host)
    tree.add_traits(host, AVX)
    reporter.flush(host, tree)
    assert world.exists("child")


def test_a_tree_can_be_edited_and_flushed_again(world: RemoteWorld, reporter: Reporter) -> None:
    host = world.add("host")
    tree = reporter.fetch(host)
    for trait in (AVX, SSE):
        tree.add_traits(host, trait)
        reporter.flush(host, tree)
    assert world.traits("host") == {AVX, SSE}


def test_a_reshape_does_not_replace_what_somebody_else_created_meanwhile(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    world.claim("vm", host={"VCPU": 2})
    tampering.before(
        "POST /resource_providers", lambda: world.add("child", "host", totals={"DISK_GB": 77})
    )

    move = to_child(world)
    asked = 0

    def reshape(tree: ProviderTree, allocations: Allocations) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            move(tree, allocations)
        else:
            assert "DISK_GB" in tree.data(world.uuid("child")).inventory

    reporter.report(ReshapingDriver(reshape), "host", host)
    assert asked == 2
    assert world.totals("child") == {"DISK_GB": 77}


@one_server
def test_a_consumer_that_ended_while_allocations_were_collected_has_nothing_to_move(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    world.claim("vm", host={"VCPU": 2})
    tampering.before("GET /allocations/*", lambda: world.release("vm"))
    reporter.report(ReshapingDriver(to_child(world)), "host", host)
    assert world.totals("child") == {"VCPU": 8}


@one_server
def test_after_a_conflict_only_what_has_moved_is_read_again(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    host = world.add("host")
    for number in range(5):
        world.add(f"child{number}", "host")
    reporter.fetch(host)
    transport.forget()
    tampering.before(
        "PUT host/traits".replace("host", "*" + host), lambda: world.set_traits("host", SSE)
    )
    reporter.report(EditingDriver(lambda tree: tree.add_traits(host, AVX)), "host", host)
    assert world.traits("host") == {AVX, SSE}
    reads = [request.path for request in transport.requests if request.method == "GET"]
    assert not [path for path in reads if "/resource_providers/" in path and host not in path]


@one_server
@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_that_lost_the_answer_to_a_write_is_a_lost_answer(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport, status: int
) -> None:
    host = world.add("host")
    tampering.answer("PUT */traits", refusal(status))
    reporter.report(EditingDriver(lambda tree: tree.add_traits(host, AVX)), "host", host)
    assert world.traits("host") == {AVX}


@one_server
def test_a_trait_that_cannot_be_had_is_no_reason_to_have_no_inventory(
    world: RemoteWorld, reporter: Reporter
) -> None:
    host = world.add("host")
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 8}})
    tree.add_traits(host, "HW_CPU_OF_NEXT_YEAR")
    with pytest.raises(Exception, match="too old to know"):
        reporter.flush(host, tree)
    assert world.totals("host") == {"VCPU": 8}
