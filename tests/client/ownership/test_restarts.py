"""Owners that crash, restart, or have lost their records."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.errors import NotConfigured
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.store import FileOwnershipStore, InMemoryOwnershipStore
from support.client.declarations import HostOwner, declared
from support.client.operator_edits import Operator, Picture
from support.client.provider_trees import stored
from support.transports.counting import CountingTransport
from support.transports.dying import DyingTransport, ProcessDeath
from support.transports.tampering import one_server

RACK = "11111111-1111-4111-8111-111111111111"
OWNER_TRAIT = "CUSTOM_ROOST_OWNER_AGENT"

pytestmark = one_server


def test_a_restarted_owner_removes_what_it_no_longer_declares(
    transport: CountingTransport, operator: Operator, host: str, tmp_path: Path
) -> None:
    operator.create(host)
    operator.set_inventory(host, "MEMORY_MB", total=64)
    first = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path))
    first.declare(
        declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"]),
        declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}}),
    )
    restarted = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path))
    restarted.declare(declared(host))
    theirs = stored({"MEMORY_MB": {"total": 64}})
    assert operator.tree(host) == {host: Picture(None, theirs, frozenset(), frozenset())}
    assert restarted.store.trees() == []


def test_resources_that_were_written_before_a_crash_are_removed_once_undeclared(
    transport: CountingTransport, operator: Operator, tmp_path: Path
) -> None:
    writes = 0
    died = True
    while died:
        host = f"host-{uuid4()}"
        operator.create(host)
        operator.add_traits(host, "CUSTOM_BY_HAND")
        store = FileOwnershipStore("agent", tmp_path)
        try:
            HostOwner(DyingTransport(transport, writes), host, store=store).declare(
                declared(host, inventories={"CUSTOM_LICENCE": {"total": 8}}, aggregates=[RACK]),
                declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}}),
            )
            died = False
        except ProcessDeath:
            writes += 1
        HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path)).declare(
            declared(host)
        )
        by_hand = frozenset({"CUSTOM_BY_HAND"})
        assert operator.tree(host) == {host: Picture(None, {}, by_hand, frozenset())}, writes
    assert writes >= 5


def test_a_crash_before_the_settled_record_is_saved_is_repaired(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    class CrashingStore(InMemoryOwnershipStore):
        """Crashes when it has to save a record after a write."""

        def save(self, root_uuid: str, record: OwnershipRecord) -> None:
            if transport.writes:
                raise ProcessDeath
            super().save(root_uuid, record)

    operator.create(host)
    store = CrashingStore()
    HostOwner(transport, host, store=store).declare(declared(host, traits=["CUSTOM_FAST"]))
    assert operator.tree(host)[host].traits == {"CUSTOM_FAST"}
    with pytest.raises(ProcessDeath):
        HostOwner(transport, host, store=store).declare(declared(host))
    assert operator.tree(host)[host].traits == frozenset()
    operator.add_traits(host, "CUSTOM_SLOW")
    transport.forget()
    HostOwner(transport, host, store=store).declare(declared(host))
    assert operator.tree(host)[host].traits == {"CUSTOM_SLOW"}


def test_an_owner_that_cannot_save_its_record_writes_nothing(
    transport: CountingTransport, host: str, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text("not a directory")
    writer = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path))
    with pytest.raises(NotConfigured):
        writer.declare(declared(host))
    assert transport.writes == []


def test_an_owner_without_record_finds_its_providers_by_their_trait(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    content = {"VCPU": {"total": 8}}
    HostOwner(transport, host).declare(
        declared(host, traits=["CUSTOM_FAST"]),
        declared(f"{host}-0", host, inventories=content, traits=["CUSTOM_FAST"]),
        declared(f"{host}-1", host, inventories=content),
        declared(f"{host}-2", host),
    )
    HostOwner(transport, host).declare(
        declared(host), declared(f"{host}-0", host, inventories=content)
    )
    assert operator.tree(host) == {
        # The host has no trait of the owner, so the owner owns nothing on it.
        host: Picture(None, {}, frozenset({"CUSTOM_FAST"}), frozenset()),
        f"{host}-0": Picture(
            host, stored(content), frozenset({OWNER_TRAIT, "CUSTOM_FAST"}), frozenset()
        ),
        # The inventory may belong to another writer, so the provider stays.
        f"{host}-1": Picture(host, stored(content), frozenset({OWNER_TRAIT}), frozenset()),
    }
    HostOwner(transport, host, adopt=True).declare(
        declared(host), declared(f"{host}-0", host, inventories=content)
    )
    assert operator.tree(host) == {
        host: Picture(None, {}, frozenset(), frozenset()),
        f"{host}-0": Picture(host, stored(content), frozenset({OWNER_TRAIT}), frozenset()),
    }


def test_an_adopting_owner_removes_undeclared_resources_of_declared_providers(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    operator.create(f"{host}-numa", host)
    for name in (host, f"{host}-numa"):
        operator.set_inventory(name, "CUSTOM_BY_HAND", total=3)
        operator.add_traits(name, "CUSTOM_BY_HAND")
    adopting = HostOwner(transport, host, adopt=True)
    adopting.declare(declared(host, traits=["CUSTOM_BY_HAND"]))
    by_hand = frozenset({"CUSTOM_BY_HAND"})
    theirs = stored({"CUSTOM_BY_HAND": {"total": 3}})
    assert operator.tree(host) == {
        host: Picture(None, {}, by_hand, frozenset()),
        f"{host}-numa": Picture(host, theirs, by_hand, frozenset()),
    }
    # Adopted resources are in the record, so an owner that does not adopt removes them too.
    HostOwner(transport, host, store=adopting.store).declare(declared(host))
    assert operator.tree(host)[host].traits == frozenset()
