"""Reporting: the driver is asked, its answer is written, and both again after a conflict."""

from __future__ import annotations

import pytest

from roost.client.errors import (
    AnswerLost,
    InventoryInUse,
    PlacementAPIConnectFailure,
    PlacementError,
    ResourceProviderCreationFailed,
    ResourceProviderRetrievalFailed,
    ResourceProviderSyncFailed,
    ResourceProviderUpdateConflict,
)
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Response
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.scripted_drivers import EditingDriver, ReshapingDriver
from support.tampering import TamperingTransport, one_server, refusal

AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"


def with_vcpu(uuid: str, total: int = 8) -> EditingDriver:
    return EditingDriver(lambda tree: tree.update_inventory(uuid, {"VCPU": {"total": total}}))


# Without trouble


def test_a_driver_fills_the_tree_and_the_server_has_it(
    world: RemoteWorld, reporter: Reporter
) -> None:
    name = world.name("host")

    def edit(tree: ProviderTree) -> None:
        tree.update_inventory(name, {"VCPU": {"total": 8}})
        tree.add_traits(name, AVX)
        if not tree.exists("child of " + name):
            tree.new_child("child of " + name, name, world.uuid("child"))

    driver = EditingDriver(edit)
    plan = reporter.report(driver, name, world.uuid("host"))
    assert plan.lines() == [
        f"{name}: created",
        f"child of {name}: created below {name}",
        f"{name}: inventory VCPU added (total 8)",
        f"{name}: traits added: {AVX}",
    ]
    assert driver.nodenames == [name]
    assert world.provider("host")["name"] == name
    assert world.totals("host") == {"VCPU": 8}
    assert world.traits("host") == {AVX}
    assert world.provider("child")["parent_provider_uuid"] == world.uuid("host")
    assert not reporter.report(driver, name, world.uuid("host")).lines()


def test_a_host_is_found_by_its_name(world: RemoteWorld, reporter: Reporter) -> None:
    host = world.add("host", totals={"VCPU": 4})
    driver = with_vcpu(world.name("host"))
    plan = reporter.report(driver, world.name("host"))
    assert plan.lines() == [f"{world.name('host')}: inventory VCPU total 4 -> 8"]
    assert driver.seen[0].get_provider_uuids() == [host]
    assert world.totals("host") == {"VCPU": 8}


@one_server
def test_a_host_of_which_only_the_name_is_known_is_created_once(
    world: RemoteWorld, reporter: Reporter
) -> None:
    name = world.name("host")
    for total in (4, 8):
        reporter.report(with_vcpu(name, total), name)
    uuid = reporter.find(name)
    assert uuid is not None
    assert reporter.fetch(uuid).data(name).inventory["VCPU"]["total"] == 8


def test_an_unknown_name_is_not_found(world: RemoteWorld, reporter: Reporter) -> None:
    assert reporter.find(world.name("host")) is None


@one_server
def test_what_a_driver_raises_is_let_through(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    def edit(tree: ProviderTree) -> None:
        raise LookupError("no such device")

    driver = EditingDriver(edit)
    with pytest.raises(LookupError, match="no such device"):
        reporter.report(driver, world.name("host"), world.uuid("host"))
    assert len(driver.seen) == 1
    assert not transport.writes


# Preview


def test_a_preview_tells_what_would_be_done_and_does_not_do_it(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    host, child = world.add("host", totals={"VCPU": 4}, traits=[SSE]), world.add("child", "host")

    def edit(tree: ProviderTree) -> None:
        tree.remove(child)
        tree.update_inventory(host, {"VCPU": {"total": 8}, world.custom("PEARLS"): {"total": 1}})
        tree.update_traits(host, [AVX])
        tree.add_aggregates(host, world.uuid("agg"))

    name = world.name("host")
    plan = reporter.preview(EditingDriver(edit), name, host)
    assert plan.lines() == [
        f"{name}: inventory {world.custom('PEARLS')} added (total 1)",
        f"{name}: inventory VCPU total 4 -> 8",
        f"{name}: aggregates added: {world.uuid('agg')}",
        f"{name}: traits added: {AVX}",
        f"{name}: traits removed: {SSE}",
        f"{world.name('child')}: deleted",
    ]
    assert not transport.writes
    assert reporter.report(EditingDriver(edit), name, host) == plan, "it is done as was told"
    assert transport.writes


@one_server
def test_a_preview_of_a_new_host_does_not_create_it(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    name = world.name("host")
    assert reporter.preview(with_vcpu(name), name).lines() == [
        f"{name}: created",
        f"{name}: inventory VCPU added (total 8)",
    ]
    assert not transport.writes
    assert reporter.find(name) is None


@one_server
def test_a_preview_of_a_reshape_does_not_reshape(
    world: RemoteWorld, reporter: Reporter, transport: CountingTransport
) -> None:
    host = world.add("host", totals={"VCPU": 8})
    vm = world.claim("vm", host={"VCPU": 1})
    driver = ReshapingDriver(lambda tree, allocations: tree.update_inventory(host, {}))
    assert reporter.preview(driver, world.name("host"), host).lines() == [
        f"{world.name('host')}: inventory VCPU removed"
    ]
    assert [list(given) for given in driver.allocations] == [[vm]]
    assert not transport.writes


# Again after a conflict


def test_after_a_conflict_the_driver_gets_what_is_there_now_and_nobody_loses(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host", traits=[AVX])
    tampering.before("PUT */inventories", lambda: world.set_traits("host", AVX, SSE))
    driver = with_vcpu(host)
    reporter.report(driver, world.name("host"), host)
    assert [tree.data(host).traits for tree in driver.seen] == [{AVX}, {AVX, SSE}]
    assert not driver.seen[1].has_inventory(host), "what the driver did at first is not in it"
    assert world.totals("host") == {"VCPU": 8}
    assert world.traits("host") == {AVX, SSE}


@one_server
def test_a_change_to_another_provider_is_no_conflict_and_survives(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host")
    world.add("child", "host")
    tampering.before("PUT */inventories", lambda: world.set_traits("child", SSE))
    driver = with_vcpu(host)
    reporter.report(driver, world.name("host"), host)
    assert len(driver.seen) == 1
    assert world.traits("child") == {SSE}


def test_aggregates_that_changed_unseen_are_merged(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host")
    tampering.before("GET */aggregates", lambda: None)
    tampering.before("GET */aggregates", lambda: world.set_aggregates_unseen("host", "theirs"))
    driver = EditingDriver(lambda tree: tree.add_aggregates(host, world.uuid("mine")))
    reporter.report(driver, world.name("host"), host)
    assert len(driver.seen) == 2
    assert world.aggregates("host") == ["mine", "theirs"]


def test_a_member_that_goes_while_it_is_read_is_not_shown_to_the_driver(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = world.add("host"), world.add("child", "host")
    tampering.before(f"GET */{child}/traits", lambda: world.delete("child"))
    driver = with_vcpu(host)
    reporter.report(driver, world.name("host"), host)
    assert [tree.get_provider_uuids() for tree in driver.seen] == [[host]]
    assert world.totals("host") == {"VCPU": 8}


@one_server
def test_conflicts_without_end_are_given_up_after_four_attempts(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host")
    tampering.answer("PUT */inventories", refusal(409, "too late"), times=4)
    driver = with_vcpu(host)
    with pytest.raises(ResourceProviderUpdateConflict, match="too late"):
        reporter.report(driver, world.name("host"), host)
    assert len(driver.seen) == 4
    assert world.totals("host") == {}


@one_server
def test_the_number_of_attempts_can_be_chosen(
    world: RemoteWorld, tampering: TamperingTransport
) -> None:
    tampering.answer("PUT */inventories", refusal(409, "too late"), times=2)
    driver = with_vcpu(world.uuid("host"))
    with pytest.raises(ResourceProviderUpdateConflict):
        Reporter(tampering, attempts=2).report(driver, world.name("host"), world.uuid("host"))
    assert len(driver.seen) == 2


@one_server
def test_a_conflict_in_the_last_attempt_but_one_is_overcome(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host")
    tampering.answer("PUT */inventories", refusal(409, "too late"), times=3)
    reporter.report(with_vcpu(host), world.name("host"), host)
    assert world.totals("host") == {"VCPU": 8}


@pytest.mark.parametrize("request_", ["POST /resource_providers", "PUT */inventories"])
@pytest.mark.parametrize("arrived", [True, False])
@one_server
def test_an_answer_that_got_lost_is_looked_for(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    request_: str,
    arrived: bool,
) -> None:
    host = world.uuid("host")
    if arrived:
        tampering.lose_answer(request_)
    else:
        tampering.fail(request_, AnswerLost("too slow"))
    driver = with_vcpu(host)
    reporter.report(driver, world.name("host"), host)
    assert world.totals("host") == {"VCPU": 8}
    assert len(driver.seen) == 2
    done = arrived and "PUT" in request_
    assert world.generation("host") == 1, "it is not done twice"
    assert driver.seen[1].has_inventory(host) == done


@one_server
def test_a_read_whose_answer_got_lost_is_not_repeated_here(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    # The transport has repeated it already.
    tampering.fail("GET /resource_providers?in_tree=*", AnswerLost("too slow"))
    driver = with_vcpu(world.uuid("host"))
    with pytest.raises(AnswerLost):
        reporter.report(driver, world.name("host"), world.uuid("host"))
    assert not driver.seen


@one_server
def test_whoever_wants_is_told_how_far_a_flush_came(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = world.add("host")
    driver = EditingDriver(
        lambda tree: tree.update_inventory(host, {"VCPU": {"total": 8}}),
        lambda tree: tree.add_traits(host, AVX),
    )
    told: list[tuple[bool, bool, str]] = []

    def failed(known: ProviderTree, error: Exception) -> None:
        told.append((known.has_inventory(host), known.has_traits(host, [AVX]), str(error)))

    tampering.answer("PUT */traits", refusal(409, "too late"))
    reporter.report(driver, world.name("host"), host, failed=failed)
    ((has_inventory, has_trait, error),) = told
    assert (has_inventory, has_trait) == (True, False)
    assert "too late" in error
    assert world.traits("host") == {AVX}


@one_server
def test_answers_that_always_get_lost_are_not_waited_for_without_end(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    tampering.fail("PUT */inventories", AnswerLost("too slow"), times=4)
    driver = with_vcpu(world.uuid("host"))
    with pytest.raises(AnswerLost):
        reporter.report(driver, world.name("host"), world.uuid("host"))
    assert len(driver.seen) == 4


@one_server
@pytest.mark.parametrize(
    ("request_", "outcome", "expected"),
    [
        ("PUT */inventories", refusal(400), ResourceProviderSyncFailed),
        (
            "PUT */inventories",
            refusal(409, code="placement.inventory.inuse"),
            InventoryInUse,
        ),
        ("PUT */inventories", PlacementAPIConnectFailure("nobody"), PlacementAPIConnectFailure),
        ("POST /resource_providers", refusal(500), ResourceProviderCreationFailed),
    ],
)
def test_what_would_only_fail_again_is_left_to_the_next_report_which_repairs_it(
    world: RemoteWorld,
    reporter: Reporter,
    tampering: TamperingTransport,
    *,
    request_: str,
    outcome: Response | PlacementError,
    expected: type[PlacementError],
) -> None:
    host = world.uuid("host")
    if isinstance(outcome, Exception):
        tampering.fail(request_, outcome)
    else:
        tampering.answer(request_, outcome)
    driver = with_vcpu(host)
    with pytest.raises(expected):
        reporter.report(driver, world.name("host"), host)
    assert len(driver.seen) == 1
    reporter.report(driver, world.name("host"), host)
    assert world.totals("host") == {"VCPU": 8}


@one_server
@pytest.mark.parametrize("status", [500, 502])
def test_a_read_that_fails_is_not_repeated_at_once(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport, status: int
) -> None:
    host = world.add("host")
    tampering.answer("GET */inventories", refusal(status))
    driver = with_vcpu(host)
    with pytest.raises(ResourceProviderRetrievalFailed):
        reporter.report(driver, world.name("host"), host)
    assert not driver.seen
    reporter.report(driver, world.name("host"), host)
    assert world.totals("host") == {"VCPU": 8}


@one_server
def test_a_name_that_went_to_another_provider_is_looked_up_again(
    world: RemoteWorld, reporter: Reporter, tampering: TamperingTransport
) -> None:
    name = world.name("host")
    driver = with_vcpu(name)
    # Somebody creates a provider of this name after it was looked for.
    tampering.before("POST /resource_providers", lambda: world.add("host"))
    with pytest.raises(ResourceProviderCreationFailed):
        reporter.report(driver, name)
    reporter.report(driver, name)
    assert world.totals("host") == {"VCPU": 8}
