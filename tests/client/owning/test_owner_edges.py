"""What an owner knows to be its own, when things do not go as they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import DeclarationRefused, PlacementAPIConnectFailure
from roost.client.owning.owner import Owner
from roost.client.owning.ownership import Owned
from roost.client.owning.records import FileRecords, MemoryRecords
from roost.client.reporting.reporter import Reporter
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.tampering import TamperingTransport, one_server

pytestmark = one_server
AVX = "HW_CPU_X86_AVX"


def declared(name: str, *traits: str, **totals: int) -> Declaration:
    inventories = {resource_class: {"total": total} for resource_class, total in totals.items()}
    return Declaration((DeclaredProvider(name, None, None, inventories, frozenset(traits)),))


def test_what_was_intended_and_not_written_is_not_ones_own(transport: CountingTransport) -> None:
    world, tampering = RemoteWorld(transport), TamperingTransport(transport)
    host = world.add("host")
    name = world.name("host")
    records = MemoryRecords()
    tampering.fail("PUT */inventories", PlacementAPIConnectFailure("down"))
    with pytest.raises(PlacementAPIConnectFailure):
        Owner(Reporter(tampering), "agent", records).declare(
            declared(name, AVX, VCPU=8), name, host
        )
    world.set_totals("host", VCPU=8)
    world.set_traits("host", AVX)
    owner = Owner(Reporter(transport), "agent", records)
    assert not owner.declare(declared(name, AVX, VCPU=8), name, host).difference
    owner.declare(declared(name), name, host)
    assert (world.totals("host"), world.traits("host")) == ({"VCPU": 8}, {AVX})


def test_what_was_written_before_a_failure_is_ones_own(transport: CountingTransport) -> None:
    world, tampering = RemoteWorld(transport), TamperingTransport(transport)
    host = world.add("host")
    name = world.name("host")
    records = MemoryRecords()
    tampering.fail("PUT */traits", PlacementAPIConnectFailure("down"))
    with pytest.raises(PlacementAPIConnectFailure):
        Owner(Reporter(tampering), "agent", records).declare(
            declared(name, AVX, VCPU=8), name, host
        )
    assert world.totals("host") == {"VCPU": 8}
    Owner(Reporter(transport), "agent", records).declare(declared(name), name, host)
    assert world.totals("host") == {}


def test_a_conflict_with_whoever_wrote_the_same_leaves_it_his(transport: CountingTransport) -> None:
    world, tampering = RemoteWorld(transport), TamperingTransport(transport)
    host = world.add("host")
    name = world.name("host")
    owner = Owner(Reporter(tampering), "agent", MemoryRecords())
    owner.declare(declared(name), name, host)
    tampering.before("PUT */traits", lambda: world.set_traits("host", AVX))
    owner.declare(declared(name, AVX), name, host)
    owner.declare(declared(name), name, host)
    assert world.traits("host") == {AVX}


def test_who_moves_below_another_root_keeps_its_memory(transport: CountingTransport) -> None:
    world = RemoteWorld(transport)
    host = world.add("host")
    world.add("rack")
    name = world.name("host")
    records = MemoryRecords()
    Owner(Reporter(transport), "agent", records).declare(declared(name, AVX), name, host)
    body = {"name": name, "parent_provider_uuid": world.uuid("rack")}
    world.send("PUT", world.path("host"), body)
    Owner(Reporter(transport), "agent", records).declare(declared(name), name, host)
    assert world.traits("host") == set()
    assert records.trees() == []


def test_adopting_is_done_once(transport: CountingTransport) -> None:
    world = RemoteWorld(transport)
    host = world.add("host", traits=[AVX])
    name = world.name("host")
    owner = Owner(Reporter(transport), "agent", MemoryRecords(), adopt=True)
    owner.declare(declared(name), name, host)
    assert world.traits("host") == set()
    world.set_traits("host", AVX)
    owner.reporter.forget()
    owner.declare(declared(name), name, host)
    assert world.traits("host") == {AVX}


def test_a_host_newer_than_its_server_is_reported_without_what_the_server_does_not_know(
    transport: CountingTransport,
) -> None:
    world = RemoteWorld(transport)
    host = world.add("host")
    name = world.name("host")
    owner = Owner(Reporter(transport), "agent", MemoryRecords())
    report = owner.declare(declared(name, AVX, "HW_CPU_OF_NEXT_YEAR", VCPU=8), name, host)
    assert report.kept == (
        "trait HW_CPU_OF_NEXT_YEAR is not written: "
        "the server is too old to know it, or it is misspelt",
    )
    assert (world.totals("host"), world.traits("host")) == ({"VCPU": 8}, {AVX})


def test_nobody_declares_the_mark_of_another(transport: CountingTransport) -> None:
    world = RemoteWorld(transport)
    host = world.add("host")
    owner = Owner(Reporter(transport), "agent", MemoryRecords())
    wish = declared(world.name("host"), "CUSTOM_OWNER_OTHER")
    with pytest.raises(DeclarationRefused, match="the mark of another owner"):
        owner.declare(wish, world.name("host"), host)


def test_an_unchanged_host_is_not_remembered_again(
    transport: CountingTransport, tmp_path: Path
) -> None:
    saved: list[str] = []

    class Watched(FileRecords):
        def save(self, root_uuid: str, owned: Owned) -> None:
            saved.append(root_uuid)
            super().save(root_uuid, owned)

    world = RemoteWorld(transport)
    host = world.add("host")
    owner = Owner(Reporter(transport), "agent", Watched("agent", tmp_path))
    for _ in range(3):
        owner.declare(declared(world.name("host"), AVX), world.name("host"), host)
    assert saved == [host]


def test_a_new_host_is_created_with_the_uuid_that_it_is_declared_with(
    transport: CountingTransport,
) -> None:
    world = RemoteWorld(transport)
    name, uuid = world.name("host"), world.uuid("host")
    wish = Declaration((DeclaredProvider(name, uuid=uuid, traits=frozenset({AVX})),))
    Owner(Reporter(transport), "agent", MemoryRecords()).declare(wish, name)
    assert AVX in world.traits("host")
