"""Operators rename and move the providers of a host, and use names that its driver declares."""

from __future__ import annotations

import pytest

from roost.client.errors import DeclarationRefused
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.reporting.reporter import Reporter
from support.client.declarations import FindingDriver, declared, kept_providers
from support.client.operator_edits import Operator
from support.transports.counting import CountingTransport
from support.transports.tampering import one_server


class Machine:
    """A host with a card that has a chip, and with a disk. Each report is that of a new process."""

    def __init__(self, transport: CountingTransport, host: str) -> None:
        self.host, self.card, self.chip, self.disk = (
            f"{host}{part}" for part in ("", "_card", "_chip", "_disk")
        )
        self._transport = transport
        self._store = InMemoryOwnershipStore()

    def report(self, disk: int = 100) -> Report:
        driver = FindingDriver(
            declared(self.host),
            declared(self.card, self.host, inventories={"CUSTOM_CARD": {"total": 1}}),
            declared(self.chip, self.card),
            declared(self.disk, self.host, inventories={"DISK_GB": {"total": disk}}),
        )
        reporter = DeclarativeReporter(Reporter(self._transport), "agent", self._store)
        return reporter.report(driver, self.host)


@pytest.fixture
def machine(transport: CountingTransport, host: str) -> Machine:
    return Machine(transport, host)


def test_a_name_that_another_tree_has_holds_up_no_other_provider(
    machine: Machine, operator: Operator
) -> None:
    foreign = operator.create(machine.card)
    for disk in (100, 200):
        report = machine.report(disk)
        assert kept_providers(report) == [machine.card, machine.chip]
        assert foreign in report.kept[0]
        assert operator.inventories(machine.disk)["DISK_GB"]["total"] == disk
    operator.delete(machine.card)
    assert not machine.report().kept
    assert operator.tree(machine.host)[machine.chip].parent == machine.card


@one_server
@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_card_that_the_operator_moved_to_another_tree_stays_there(
    machine: Machine, operator: Operator, is_renamed: bool
) -> None:
    machine.report()
    card, rack = operator.uuid(machine.card), operator.create(f"{machine.host}-rack")
    operator.move(machine.card, below=rack)
    name = f"{machine.card}-spare" if is_renamed else machine.card
    if is_renamed:
        operator.api.put(
            f"/resource_providers/{card}", {"name": name, "parent_provider_uuid": rack}
        )
    report = machine.report(disk=200)
    assert set(kept_providers(report)) == {machine.card, machine.chip}
    assert operator.tree(f"{machine.host}-rack")[name].inventories.keys() == {"CUSTOM_CARD"}
    assert (operator.uuid(name), operator.names(machine.host)) == (
        card,
        {machine.host, machine.disk},
    )
    assert operator.inventories(machine.disk)["DISK_GB"]["total"] == 200


@one_server
def test_a_card_that_comes_back_from_another_tree_is_the_owners_again(
    machine: Machine, operator: Operator
) -> None:
    machine.report()
    rack, disk = operator.create(f"{machine.host}-rack"), operator.uuid(machine.disk)
    for place in (rack, disk):
        operator.move(machine.card, below=place)
        report = machine.report()
    assert report.difference.lines() == [f"{machine.card}: moved below {machine.host}"]
    assert not report.kept


@one_server
def test_a_host_that_the_operator_renamed_is_not_created_again(
    machine: Machine, operator: Operator
) -> None:
    machine.report()
    path = f"/resource_providers/{operator.uuid(machine.host)}"
    operator.api.put(path, {"name": f"{machine.host}-old"})
    with pytest.raises(DeclarationRefused, match=f"is named {machine.host}-old now"):
        machine.report()
    assert operator.uuid(machine.host) is None
    operator.api.put(path, {"name": machine.host})
    assert not machine.report().difference
