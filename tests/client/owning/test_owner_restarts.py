"""What becomes of a declaration when its writer dies, starts again, or has lost its memory."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.errors import NotConfigured
from roost.client.owning.ownership import Owned
from roost.client.owning.records import FileRecords, MemoryRecords
from support.by_hand import Operator, Picture
from support.counting import CountingTransport
from support.forest import stored
from support.mortal import Death, MortalTransport
from support.owning import Writer, declared
from support.tampering import one_server

RACK = "11111111-1111-4111-8111-111111111111"
MARK = "CUSTOM_OWNER_AGENT"

pytestmark = one_server


def test_after_a_restart_what_is_no_longer_declared_goes(
    transport: CountingTransport, operator: Operator, host: str, tmp_path: Path
) -> None:
    operator.create(host)
    operator.set_inventory(host, "MEMORY_MB", total=64)
    first = Writer(transport, host, records=FileRecords("agent", tmp_path))
    first.declare(
        declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"]),
        declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}}),
    )
    restarted = Writer(transport, host, records=FileRecords("agent", tmp_path))
    restarted.declare(declared(host))
    theirs = stored({"MEMORY_MB": {"total": 64}})
    assert operator.tree(host) == {host: Picture(None, theirs, frozenset(), frozenset())}
    assert restarted.records.trees() == []


def test_whatever_was_written_before_a_crash_goes_if_it_is_not_declared_again(
    transport: CountingTransport, operator: Operator, tmp_path: Path
) -> None:
    writes = 0
    died = True
    while died:
        host = f"host-{uuid4()}"
        operator.create(host)
        operator.add_traits(host, "CUSTOM_BY_HAND")
        records = FileRecords("agent", tmp_path)
        try:
            Writer(MortalTransport(transport, writes), host, records=records).declare(
                declared(host, inventories={"CUSTOM_LICENCE": {"total": 8}}, aggregates=[RACK]),
                declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}}),
            )
            died = False
        except Death:
            writes += 1
        Writer(transport, host, records=FileRecords("agent", tmp_path)).declare(declared(host))
        by_hand = frozenset({"CUSTOM_BY_HAND"})
        assert operator.tree(host) == {host: Picture(None, {}, by_hand, frozenset())}, writes
    assert writes >= 5


def test_a_crash_between_the_last_write_and_the_note_of_it_does_no_harm(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    class Forgetful(MemoryRecords):
        """Dies when it is told that all was written."""

        def save(self, root_uuid: str, owned: Owned) -> None:
            if transport.writes:
                raise Death
            super().save(root_uuid, owned)

    operator.create(host)
    records = Forgetful()
    Writer(transport, host, records=records).declare(declared(host, traits=["CUSTOM_FAST"]))
    assert operator.tree(host)[host].traits == {"CUSTOM_FAST"}
    with pytest.raises(Death):
        Writer(transport, host, records=records).declare(declared(host))
    assert operator.tree(host)[host].traits == frozenset()
    operator.add_traits(host, "CUSTOM_SLOW")
    transport.forget()
    Writer(transport, host, records=records).declare(declared(host))
    assert operator.tree(host)[host].traits == {"CUSTOM_SLOW"}


def test_nothing_is_written_that_could_not_be_remembered(
    transport: CountingTransport, host: str, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text("not a directory")
    writer = Writer(transport, host, records=FileRecords("agent", tmp_path))
    with pytest.raises(NotConfigured):
        writer.declare(declared(host))
    assert transport.writes == []


def test_an_owner_that_lost_its_memory_finds_its_providers_by_their_mark(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    content = {"VCPU": {"total": 8}}
    Writer(transport, host).declare(
        declared(host, traits=["CUSTOM_FAST"]),
        declared(f"{host}-0", host, inventories=content, traits=["CUSTOM_FAST"]),
        declared(f"{host}-1", host, inventories=content),
        declared(f"{host}-2", host),
    )
    Writer(transport, host).declare(
        declared(host), declared(f"{host}-0", host, inventories=content)
    )
    assert operator.tree(host) == {
        # On providers without mark nobody can tell whose something is.
        host: Picture(None, {}, frozenset({"CUSTOM_FAST"}), frozenset()),
        f"{host}-0": Picture(host, stored(content), frozenset({MARK, "CUSTOM_FAST"}), frozenset()),
        # Nor whose the inventory is that makes a provider worth keeping.
        f"{host}-1": Picture(host, stored(content), frozenset({MARK}), frozenset()),
    }
    Writer(transport, host, adopt=True).declare(
        declared(host), declared(f"{host}-0", host, inventories=content)
    )
    assert operator.tree(host) == {
        host: Picture(None, {}, frozenset(), frozenset()),
        f"{host}-0": Picture(host, stored(content), frozenset({MARK}), frozenset()),
    }


def test_who_adopts_removes_what_is_not_declared_on_declared_providers(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    operator.create(f"{host}-numa", host)
    for name in (host, f"{host}-numa"):
        operator.set_inventory(name, "CUSTOM_BY_HAND", total=3)
        operator.add_traits(name, "CUSTOM_BY_HAND")
    adopting = Writer(transport, host, adopt=True)
    adopting.declare(declared(host, traits=["CUSTOM_BY_HAND"]))
    by_hand = frozenset({"CUSTOM_BY_HAND"})
    theirs = stored({"CUSTOM_BY_HAND": {"total": 3}})
    assert operator.tree(host) == {
        host: Picture(None, {}, by_hand, frozenset()),
        f"{host}-numa": Picture(host, theirs, by_hand, frozenset()),
    }
    # What was adopted is owned, so it goes with the declaration of an owner that adopts nothing.
    Writer(transport, host, records=adopting.records).declare(declared(host))
    assert operator.tree(host)[host].traits == frozenset()
