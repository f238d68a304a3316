"""An owner whose records cannot be saved: it goes on, adds nothing, and recovers."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from roost.client.ownership.store import FileOwnershipStore
from support.client.declarations import HostOwner, declared, kept_providers
from support.client.operator_edits import Operator
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

pytestmark = one_server


class FullDisk:
    """Fills the disk under the records, and makes room again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._full = 0
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._sync)

    def fill(self, error: int = errno.ENOSPC) -> None:
        self._full = error

    def make_room(self) -> None:
        self._full = 0

    def _sync(self, handle: int) -> None:
        if self._full:
            raise OSError(self._full, os.strerror(self._full))
        self._fsync(handle)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch)


@pytest.fixture
def owner(transport: CountingTransport, operator: Operator, host: str, tmp_path: Path) -> HostOwner:
    operator.create(host)
    found = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path))
    found.declare(
        declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"]),
        declared(f"{host}_card", host, inventories={"CUSTOM_CARD": {"total": 1}}),
    )
    return found


def restarted(owner: HostOwner, transport: CountingTransport, tmp_path: Path) -> HostOwner:
    return HostOwner(transport, owner.host, store=FileOwnershipStore("agent", tmp_path))


def test_new_amounts_are_reported_while_the_disk_is_full(
    owner: HostOwner, operator: Operator, disk: FullDisk
) -> None:
    disk.fill()
    report = owner.declare(
        declared(owner.host, inventories={"VCPU": {"total": 16}}, traits=["CUSTOM_FAST"]),
        declared(f"{owner.host}_card", owner.host, inventories={"CUSTOM_CARD": {"total": 2}}),
    )
    assert not report.kept
    assert operator.inventories(owner.host)["VCPU"]["total"] == 16
    assert operator.inventories(f"{owner.host}_card")["CUSTOM_CARD"]["total"] == 2


def test_additions_wait_until_the_disk_has_room(
    owner: HostOwner,
    operator: Operator,
    disk: FullDisk,
    transport: CountingTransport,
    tmp_path: Path,
) -> None:
    host = owner.host
    wanted = (
        declared(
            host,
            inventories={"VCPU": {"total": 16}, "MEMORY_MB": {"total": 64}},
            traits=["CUSTOM_FAST", "CUSTOM_COMES_LATER"],
        ),
        declared(f"{host}_card", host, inventories={"CUSTOM_CARD": {"total": 1}}),
        declared(f"{host}_disk", host, inventories={"DISK_GB": {"total": 100}}),
        declared(f"{host}_part", f"{host}_disk"),
    )
    disk.fill()
    report = owner.declare(*wanted)
    assert kept_providers(report) == [host, f"{host}_disk", f"{host}_part"]
    tree = operator.tree(host)
    assert set(tree) == {host, f"{host}_card"}
    assert set(tree[host].inventories) == {"VCPU"}
    assert tree[host].inventories["VCPU"]["total"] == 16
    assert tree[host].traits == {"CUSTOM_FAST"}
    disk.make_room()
    assert not owner.declare(*wanted).kept
    assert operator.names(host) == {host, f"{host}_card", f"{host}_disk", f"{host}_part"}
    # All of it is in the records: an owner that starts again removes it.
    restarted(owner, transport, tmp_path).declare(declared(host))
    tree = operator.tree(host)
    assert (set(tree), tree[host].inventories, tree[host].traits) == ({host}, {}, frozenset())


def test_an_operator_that_adds_what_was_removed_meanwhile_keeps_it(
    owner: HostOwner, operator: Operator, disk: FullDisk
) -> None:
    host = owner.host
    disk.fill()
    owner.declare(declared(host))
    assert operator.names(host) == {host}
    operator.add_traits(host, "CUSTOM_FAST")
    # The next reports read what the operator wrote.
    for _ in range(2):
        owner = HostOwner(owner.transport, host, store=owner.store)
        owner.declare(declared(host))
        disk.make_room()
    assert operator.tree(host)[host].traits == {"CUSTOM_FAST"}


def test_an_owner_without_a_record_removes_nothing_that_it_declares(
    owner: HostOwner,
    operator: Operator,
    disk: FullDisk,
    transport: CountingTransport,
    tmp_path: Path,
) -> None:
    """The record is lost and the disk is full: the mark of the card is all that is known."""
    host = owner.host
    for record in tmp_path.glob("agent/*.json"):
        record.unlink()
    before = operator.tree(host)
    disk.fill()
    for adopt in (False, True):
        lost = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path), adopt=adopt)
        lost.declare(
            declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"]),
            declared(f"{host}_card", host, inventories={"CUSTOM_CARD": {"total": 1}}),
        )
        assert operator.tree(host) == before


def test_a_conflict_with_another_writer_hides_no_line_about_what_waits(
    owner: HostOwner, disk: FullDisk, transport: CountingTransport
) -> None:
    host = owner.host
    tampering = TamperingTransport(transport)
    tampering.conflict("PUT */inventories")
    disk.fill()
    report = HostOwner(tampering, host, store=owner.store).declare(
        declared(host, inventories={"VCPU": {"total": 16}}, traits=["CUSTOM_FAST"]),
        declared(f"{host}_card", host, inventories={"CUSTOM_CARD": {"total": 1}}),
        declared(f"{host}_disk", host),
    )
    assert tampering.left == []
    assert kept_providers(report) == [f"{host}_disk"]


def test_a_tree_that_was_put_below_another_is_reported_while_the_disk_is_full(
    owner: HostOwner,
    operator: Operator,
    disk: FullDisk,
    transport: CountingTransport,
    tmp_path: Path,
) -> None:
    host, rack = owner.host, f"rack-of-{owner.host}"
    root, member = operator.create(rack), operator.uuid(host)
    operator.api.put(f"/resource_providers/{member}", {"name": host, "parent_provider_uuid": root})
    disk.fill()
    HostOwner(transport, rack, store=owner.store).declare(
        declared(rack),
        declared(host, rack, inventories={"VCPU": {"total": 16}}, traits=["CUSTOM_FAST"]),
        declared(f"{host}_card", host, inventories={"CUSTOM_CARD": {"total": 1}}),
    )
    assert operator.inventories(host)["VCPU"]["total"] == 16
    disk.make_room()
    store = FileOwnershipStore("agent", tmp_path)
    HostOwner(transport, rack, store=store).declare(declared(rack), declared(host, rack))
    tree = operator.tree(rack)
    assert (set(tree), tree[host].inventories, tree[host].traits) == ({rack, host}, {}, frozenset())
    assert store.trees() == []


def test_a_new_host_waits_until_the_disk_has_room(
    transport: CountingTransport, operator: Operator, disk: FullDisk, host: str, tmp_path: Path
) -> None:
    owner = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path))
    wanted = (declared(host), declared(f"{host}_card", host))
    disk.fill()
    assert kept_providers(owner.declare(*wanted)) == [host, f"{host}_card"]
    assert operator.uuid(host) is None
    disk.make_room()
    assert not owner.declare(*wanted).kept
    assert operator.names(host) == {host, f"{host}_card"}


@pytest.mark.parametrize("is_noticed", [False, True])
def test_a_provider_that_the_operator_renamed_stays_while_the_disk_is_full(
    owner: HostOwner, operator: Operator, disk: FullDisk, is_noticed: bool
) -> None:
    host, card, lab = owner.host, f"{owner.host}_card", f"{owner.host}_lab"
    uuid = operator.uuid(card)
    operator.api.put(f"/resource_providers/{uuid}", {"name": lab})
    wanted = (
        declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_LATER"]),
        declared(card, host, inventories={"CUSTOM_CARD": {"total": 2}}),
    )
    if is_noticed:
        HostOwner(owner.transport, host, store=owner.store).declare(*wanted)
    disk.fill()
    HostOwner(owner.transport, host, store=owner.store).declare(
        *wanted, declared(f"{host}_disk", host)
    )
    assert operator.uuid(lab) == uuid
    assert operator.inventories(lab)["CUSTOM_CARD"]["total"] == 2


def test_a_host_that_is_moved_below_a_rack_is_reported_while_the_disk_is_full(
    owner: HostOwner,
    operator: Operator,
    disk: FullDisk,
    transport: CountingTransport,
    tmp_path: Path,
) -> None:
    host = owner.host
    operator.move(host, below=operator.create(f"{host}-rack"))
    disk.fill()
    again = restarted(owner, transport, tmp_path)
    for total in (16, 32):
        again.declare(declared(host, inventories={"VCPU": {"total": total}}))
        assert operator.inventories(host)["VCPU"]["total"] == total
    disk.make_room()
    again.declare(declared(host))
    restarted(owner, transport, tmp_path).declare(declared(host))
    assert (operator.inventories(host), list(tmp_path.glob("agent/*"))) == ({}, [])
