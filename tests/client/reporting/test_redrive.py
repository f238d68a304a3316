"""Reports: the driver edits the tree, the reporter writes it, both again after a conflict."""

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
    WriteLost,
)
from roost.client.outcome import Outcome, outcome_of
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementResponse
from support.client.live_providers import LiveProviders
from support.stubs.scripted_drivers import EditingDriver, ReshapingDriver
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server, refusal

AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"


def with_vcpu(uuid: str, total: int = 8) -> EditingDriver:
    return EditingDriver(lambda tree: tree.update_inventory(uuid, {"VCPU": {"total": total}}))


# Without conflicts


def test_a_report_writes_the_tree_of_the_driver(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    name = live_providers.name("host")

    def edit(tree: ProviderTree) -> None:
        tree.update_inventory(name, {"VCPU": {"total": 8}})
        tree.add_traits(name, AVX)
        if not tree.exists("child of " + name):
            tree.new_child("child of " + name, name, live_providers.uuid("child"))

    driver = EditingDriver(edit)
    plan = reporter.report(driver, name, live_providers.uuid("host"))
    assert plan.lines() == [
        f"{name}: created",
        f"child of {name}: created below {name}",
        f"{name}: inventory VCPU added (total 8)",
        f"{name}: traits added: {AVX}",
    ]
    assert driver.nodenames == [name]
    assert live_providers.provider("host")["name"] == name
    assert live_providers.totals("host") == {"VCPU": 8}
    assert live_providers.traits("host") == {AVX}
    assert live_providers.provider("child")["parent_provider_uuid"] == live_providers.uuid("host")
    assert not reporter.report(driver, name, live_providers.uuid("host")).lines()


def test_a_host_is_found_by_its_name(live_providers: LiveProviders, reporter: Reporter) -> None:
    host = live_providers.add("host", totals={"VCPU": 4})
    driver = with_vcpu(live_providers.name("host"))
    plan = reporter.report(driver, live_providers.name("host"))
    assert plan.lines() == [f"{live_providers.name('host')}: inventory VCPU total 4 -> 8"]
    assert driver.seen[0].get_provider_uuids() == [host]
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_a_host_that_is_reported_by_name_is_created_once(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    name = live_providers.name("host")
    for total in (4, 8):
        reporter.report(with_vcpu(name, total), name)
    uuid = reporter.find(name)
    assert uuid is not None
    assert reporter.fetch(uuid).data(name).inventory["VCPU"]["total"] == 8


def test_an_unknown_name_is_not_found(live_providers: LiveProviders, reporter: Reporter) -> None:
    assert reporter.find(live_providers.name("host")) is None


@one_server
def test_an_exception_of_a_driver_ends_the_report(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    def edit(tree: ProviderTree) -> None:
        raise LookupError("no such device")

    driver = EditingDriver(edit)
    with pytest.raises(LookupError, match="no such device"):
        reporter.report(driver, live_providers.name("host"), live_providers.uuid("host"))
    assert len(driver.seen) == 1
    assert not transport.writes


# Preview


def test_a_preview_returns_the_difference_and_writes_nothing(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, child = (
        live_providers.add("host", totals={"VCPU": 4}, traits=[SSE]),
        live_providers.add("child", "host"),
    )

    def edit(tree: ProviderTree) -> None:
        tree.remove(child)
        tree.update_inventory(
            host, {"VCPU": {"total": 8}, live_providers.custom("PEARLS"): {"total": 1}}
        )
        tree.update_traits(host, [AVX])
        tree.add_aggregates(host, live_providers.uuid("agg"))

    name = live_providers.name("host")
    plan = reporter.preview(EditingDriver(edit), name, host)
    assert plan.lines() == [
        f"{name}: inventory {live_providers.custom('PEARLS')} added (total 1)",
        f"{name}: inventory VCPU total 4 -> 8",
        f"{name}: aggregates added: {live_providers.uuid('agg')}",
        f"{name}: traits added: {AVX}",
        f"{name}: traits removed: {SSE}",
        f"{live_providers.name('child')}: deleted",
    ]
    assert not transport.writes
    assert reporter.report(EditingDriver(edit), name, host) == plan, (
        "the report writes what the preview returned"
    )
    assert transport.writes


@one_server
def test_a_preview_of_a_new_host_does_not_create_it(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    name = live_providers.name("host")
    assert reporter.preview(with_vcpu(name), name).lines() == [
        f"{name}: created",
        f"{name}: inventory VCPU added (total 8)",
    ]
    assert not transport.writes
    assert reporter.find(name) is None


@one_server
def test_a_preview_of_a_reshape_does_not_reshape(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 8})
    vm = live_providers.claim("vm", host={"VCPU": 1})
    driver = ReshapingDriver(lambda tree, allocations: tree.update_inventory(host, {}))
    assert reporter.preview(driver, live_providers.name("host"), host).lines() == [
        f"{live_providers.name('host')}: inventory VCPU removed"
    ]
    assert [list(given) for given in driver.allocations] == [[vm]]
    assert not transport.writes


# After a conflict


def test_the_driver_gets_the_present_tree_after_a_conflict_and_no_change_is_lost(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host", traits=[AVX])
    tampering.before("PUT */inventories", lambda: live_providers.set_traits("host", AVX, SSE))
    driver = with_vcpu(host)
    reporter.report(driver, live_providers.name("host"), host)
    assert [tree.data(host).traits for tree in driver.seen] == [{AVX}, {AVX, SSE}]
    assert not driver.seen[1].has_inventory(host), (
        "the second tree has no edits of the first attempt"
    )
    assert live_providers.totals("host") == {"VCPU": 8}
    assert live_providers.traits("host") == {AVX, SSE}


@one_server
def test_a_change_of_another_provider_is_no_conflict(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host")
    live_providers.add("child", "host")
    tampering.before("PUT */inventories", lambda: live_providers.set_traits("child", SSE))
    driver = with_vcpu(host)
    reporter.report(driver, live_providers.name("host"), host)
    assert len(driver.seen) == 1
    assert live_providers.traits("child") == {SSE}


def test_aggregates_that_changed_without_a_new_generation_are_kept(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host")
    tampering.before("GET */aggregates", lambda: None)
    tampering.before(
        "GET */aggregates", lambda: live_providers.set_aggregates_unseen("host", "theirs")
    )
    driver = EditingDriver(lambda tree: tree.add_aggregates(host, live_providers.uuid("mine")))
    reporter.report(driver, live_providers.name("host"), host)
    assert len(driver.seen) == 2
    assert live_providers.aggregates("host") == ["mine", "theirs"]


def test_a_member_that_is_deleted_during_the_read_is_not_in_the_drivers_tree(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    tampering.before(f"GET */{child}/traits", lambda: live_providers.delete("child"))
    driver = with_vcpu(host)
    reporter.report(driver, live_providers.name("host"), host)
    assert [tree.get_provider_uuids() for tree in driver.seen] == [[host]]
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_a_report_ends_after_four_conflicts(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host")
    tampering.answer("PUT */inventories", refusal(409, "too late"), times=4)
    driver = with_vcpu(host)
    with pytest.raises(ResourceProviderUpdateConflict, match="too late"):
        reporter.report(driver, live_providers.name("host"), host)
    assert len(driver.seen) == 4
    assert live_providers.totals("host") == {}


@one_server
def test_a_reporter_may_have_another_number_of_attempts(
    live_providers: LiveProviders, tampering: TamperingTransport
) -> None:
    tampering.answer("PUT */inventories", refusal(409, "too late"), times=2)
    driver = with_vcpu(live_providers.uuid("host"))
    with pytest.raises(ResourceProviderUpdateConflict):
        Reporter(tampering, attempts=2).report(
            driver, live_providers.name("host"), live_providers.uuid("host")
        )
    assert len(driver.seen) == 2


@one_server
def test_a_report_succeeds_after_three_conflicts(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host")
    tampering.answer("PUT */inventories", refusal(409, "too late"), times=3)
    reporter.report(with_vcpu(host), live_providers.name("host"), host)
    assert live_providers.totals("host") == {"VCPU": 8}


@pytest.mark.parametrize("request_", ["POST /resource_providers", "PUT */inventories"])
@pytest.mark.parametrize("arrived", [True, False])
@one_server
def test_the_tree_is_read_again_after_a_lost_answer_to_a_write(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    request_: str,
    arrived: bool,
) -> None:
    host = live_providers.uuid("host")
    if arrived:
        tampering.lose_answer(request_)
    else:
        tampering.fail(request_, AnswerLost("too slow"))
    driver = with_vcpu(host)
    reporter.report(driver, live_providers.name("host"), host)
    assert live_providers.totals("host") == {"VCPU": 8}
    assert len(driver.seen) == 2
    done = arrived and "PUT" in request_
    assert live_providers.generation("host") == 1, "the write is not done twice"
    assert driver.seen[1].has_inventory(host) == done


@one_server
def test_a_lost_answer_to_a_read_ends_the_report(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    # The transport has repeated the read already.
    tampering.fail("GET /resource_providers?in_tree=*", AnswerLost("too slow"))
    driver = with_vcpu(live_providers.uuid("host"))
    with pytest.raises(AnswerLost):
        reporter.report(driver, live_providers.name("host"), live_providers.uuid("host"))
    assert not driver.seen


@one_server
@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize(
    "failure",
    [AnswerLost("too slow"), PlacementAPIConnectFailure("refused"), refusal(503), refusal(403)],
    ids=["lost", "unreachable", "unavailable", "forbidden"],
)
def test_a_lost_write_that_cannot_be_found_out_about_stays_unknown(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    failure: PlacementError | PlacementResponse,
    arrived: bool,
) -> None:
    host = live_providers.add("host")
    driver = with_vcpu(host)
    if arrived:
        tampering.lose_answer("PUT */inventories")
    else:
        tampering.fail("PUT */inventories", AnswerLost("too slow"))
    if isinstance(failure, PlacementResponse):
        tampering.answer("GET *in_tree*", failure, after=1)
    else:
        tampering.fail("GET *in_tree*", failure, after=1)
    with pytest.raises(WriteLost, match="cannot be found out") as caught:
        reporter.report(driver, live_providers.name("host"), host)
    assert outcome_of(caught.value) is Outcome.UNKNOWN
    assert isinstance(caught.value.__cause__, WriteLost)
    assert len(driver.seen) == 1
    reporter.report(driver, live_providers.name("host"), host)
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_the_callback_gets_the_tree_and_the_error_of_a_failed_flush(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    host = live_providers.add("host")
    driver = EditingDriver(
        lambda tree: tree.update_inventory(host, {"VCPU": {"total": 8}}),
        lambda tree: tree.add_traits(host, AVX),
    )
    calls: list[tuple[bool, bool, str]] = []

    def failed(known: ProviderTree, error: Exception) -> None:
        calls.append((known.has_inventory(host), known.has_traits(host, [AVX]), str(error)))

    tampering.answer("PUT */traits", refusal(409, "too late"))
    reporter.report(driver, live_providers.name("host"), host, failed=failed)
    ((has_inventory, has_trait, error),) = calls
    assert (has_inventory, has_trait) == (True, False)
    assert "too late" in error
    assert live_providers.traits("host") == {AVX}


@one_server
def test_a_report_ends_after_four_lost_answers(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    tampering.fail("PUT */inventories", AnswerLost("too slow"), times=4)
    driver = with_vcpu(live_providers.uuid("host"))
    with pytest.raises(AnswerLost):
        reporter.report(driver, live_providers.name("host"), live_providers.uuid("host"))
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
        ("PUT */inventories", PlacementAPIConnectFailure("refused"), PlacementAPIConnectFailure),
        ("POST /resource_providers", refusal(500), ResourceProviderCreationFailed),
    ],
)
def test_a_refusal_ends_the_report_and_the_next_report_repairs_the_tree(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    *,
    request_: str,
    outcome: PlacementResponse | PlacementError,
    expected: type[PlacementError],
) -> None:
    host = live_providers.uuid("host")
    if isinstance(outcome, Exception):
        tampering.fail(request_, outcome)
    else:
        tampering.answer(request_, outcome)
    driver = with_vcpu(host)
    with pytest.raises(expected):
        reporter.report(driver, live_providers.name("host"), host)
    assert len(driver.seen) == 1
    reporter.report(driver, live_providers.name("host"), host)
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
@pytest.mark.parametrize("status", [500, 502])
def test_a_refused_read_ends_the_report(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport, status: int
) -> None:
    host = live_providers.add("host")
    tampering.answer("GET */inventories", refusal(status))
    driver = with_vcpu(host)
    with pytest.raises(ResourceProviderRetrievalFailed):
        reporter.report(driver, live_providers.name("host"), host)
    assert not driver.seen
    reporter.report(driver, live_providers.name("host"), host)
    assert live_providers.totals("host") == {"VCPU": 8}


@one_server
def test_a_name_that_another_provider_has_got_is_looked_up_again(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport
) -> None:
    name = live_providers.name("host")
    driver = with_vcpu(name)
    # Another writer creates a provider of this name after the reporter has looked it up.
    tampering.before("POST /resource_providers", lambda: live_providers.add("host"))
    with pytest.raises(ResourceProviderCreationFailed):
        reporter.report(driver, name)
    reporter.report(driver, name)
    assert live_providers.totals("host") == {"VCPU": 8}
