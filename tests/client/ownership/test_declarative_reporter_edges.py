"""Ownership after failures, conflicts, moves and adoption."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.client.errors import AnswerLost, DeclarationRefused, PlacementAPIConnectFailure
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.store import (
    FileOwnershipStore,
    InMemoryOwnershipStore,
    OwnershipStore,
)
from roost.client.reporting.reporter import Reporter
from roost.model.trees.declaration import Declaration, DeclaredProvider
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

pytestmark = one_server
AVX = "HW_CPU_X86_AVX"


def declared(name: str, *traits: str, **totals: int) -> Declaration:
    inventories = {resource_class: {"total": total} for resource_class, total in totals.items()}
    return Declaration((DeclaredProvider(name, None, None, inventories, frozenset(traits)),))


def test_resources_that_were_not_written_are_not_owned(transport: CountingTransport) -> None:
    live_providers, tampering = LiveProviders(transport), TamperingTransport(transport)
    host = live_providers.add("host")
    name = live_providers.name("host")
    store = InMemoryOwnershipStore()
    tampering.fail("PUT */inventories", PlacementAPIConnectFailure("down"))
    with pytest.raises(PlacementAPIConnectFailure):
        DeclarativeReporter(Reporter(tampering), "agent", store).declare(
            declared(name, AVX, VCPU=8), name, host
        )
    live_providers.set_totals("host", VCPU=8)
    live_providers.set_traits("host", AVX)
    reporter = DeclarativeReporter(Reporter(transport), "agent", store)
    assert not reporter.declare(declared(name, AVX, VCPU=8), name, host).difference
    reporter.declare(declared(name), name, host)
    assert (live_providers.totals("host"), live_providers.traits("host")) == ({"VCPU": 8}, {AVX})


def test_resources_that_were_written_before_a_failure_are_owned(
    transport: CountingTransport,
) -> None:
    live_providers, tampering = LiveProviders(transport), TamperingTransport(transport)
    host = live_providers.add("host")
    name = live_providers.name("host")
    store = InMemoryOwnershipStore()
    tampering.fail("PUT */traits", PlacementAPIConnectFailure("down"))
    with pytest.raises(PlacementAPIConnectFailure):
        DeclarativeReporter(Reporter(tampering), "agent", store).declare(
            declared(name, AVX, VCPU=8), name, host
        )
    assert live_providers.totals("host") == {"VCPU": 8}
    DeclarativeReporter(Reporter(transport), "agent", store).declare(declared(name), name, host)
    assert live_providers.totals("host") == {}


def test_a_lost_read_leaves_no_doubt_about_what_was_written(transport: CountingTransport) -> None:
    live_providers, tampering = LiveProviders(transport), TamperingTransport(transport)
    host, name, trait = (
        live_providers.add("host"),
        live_providers.name("host"),
        live_providers.custom("GOLD"),
    )
    store = InMemoryOwnershipStore()
    # The reporter writes the inventory before it asks whether the server knows the trait.
    tampering.fail("GET /traits?*", AnswerLost("timed out"))
    with pytest.raises(AnswerLost):
        DeclarativeReporter(Reporter(tampering), "agent", store).declare(
            declared(name, trait, VCPU=8), name, host
        )
    live_providers.send("PUT", f"/traits/{trait}")
    live_providers.set_traits("host", trait)
    DeclarativeReporter(Reporter(transport), "agent", store).declare(declared(name), name, host)
    assert (live_providers.totals("host"), live_providers.traits("host")) == ({}, {trait})


def test_resources_that_another_writer_added_during_a_conflict_are_not_owned(
    transport: CountingTransport,
) -> None:
    live_providers, tampering = LiveProviders(transport), TamperingTransport(transport)
    host = live_providers.add("host")
    name = live_providers.name("host")
    reporter = DeclarativeReporter(Reporter(tampering), "agent", InMemoryOwnershipStore())
    reporter.declare(declared(name), name, host)
    tampering.before("PUT */traits", lambda: live_providers.set_traits("host", AVX))
    reporter.declare(declared(name, AVX), name, host)
    reporter.declare(declared(name), name, host)
    assert live_providers.traits("host") == {AVX}


def test_a_root_that_moves_below_another_root_keeps_its_record(
    transport: CountingTransport,
) -> None:
    live_providers = LiveProviders(transport)
    host = live_providers.add("host")
    live_providers.add("rack")
    name = live_providers.name("host")
    store = InMemoryOwnershipStore()
    DeclarativeReporter(Reporter(transport), "agent", store).declare(
        declared(name, AVX), name, host
    )
    body = {"name": name, "parent_provider_uuid": live_providers.uuid("rack")}
    live_providers.send("PUT", live_providers.path("host"), body)
    DeclarativeReporter(Reporter(transport), "agent", store).declare(declared(name), name, host)
    assert live_providers.traits("host") == set()
    assert store.trees() == []


@pytest.mark.parametrize("is_file", [False, True])
def test_a_host_that_is_moved_below_a_rack_and_back_keeps_its_record(
    transport: CountingTransport, tmp_path: Path, is_file: bool
) -> None:
    live_providers = LiveProviders(transport)
    host, rack = live_providers.add("host"), live_providers.add("rack")
    name = live_providers.name("host")
    memory = InMemoryOwnershipStore()

    def store() -> OwnershipStore:
        return FileOwnershipStore("agent", tmp_path) if is_file else memory

    def declare(*traits: str) -> None:
        reporter = DeclarativeReporter(Reporter(transport), "agent", store())
        reporter.declare(declared(name, *traits), name, host)

    declare(AVX)
    for parent in (rack, None):
        body = {"name": name, "parent_provider_uuid": parent}
        live_providers.send("PUT", live_providers.path("host"), body)
        declare(AVX)
        assert store().trees() == [parent or host]
    declare()
    assert (live_providers.traits("host"), store().trees()) == (set(), [])


def test_adoption_happens_once(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    host = live_providers.add("host", traits=[AVX])
    name = live_providers.name("host")
    reporter = DeclarativeReporter(
        Reporter(transport), "agent", InMemoryOwnershipStore(), adopt=True
    )
    reporter.declare(declared(name), name, host)
    assert live_providers.traits("host") == set()
    live_providers.set_traits("host", AVX)
    reporter.reporter.forget()
    reporter.declare(declared(name), name, host)
    assert live_providers.traits("host") == {AVX}


def test_standard_traits_that_the_server_does_not_know_are_left_out(
    transport: CountingTransport,
) -> None:
    live_providers = LiveProviders(transport)
    host = live_providers.add("host")
    name = live_providers.name("host")
    reporter = DeclarativeReporter(Reporter(transport), "agent", InMemoryOwnershipStore())
    report = reporter.declare(declared(name, AVX, "HW_CPU_OF_NEXT_YEAR", VCPU=8), name, host)
    (line,) = report.kept
    assert "HW_CPU_OF_NEXT_YEAR" in line
    assert (live_providers.totals("host"), live_providers.traits("host")) == ({"VCPU": 8}, {AVX})


def test_a_declaration_with_the_trait_of_another_owner_is_refused(
    transport: CountingTransport,
) -> None:
    live_providers = LiveProviders(transport)
    host = live_providers.add("host")
    reporter = DeclarativeReporter(Reporter(transport), "agent", InMemoryOwnershipStore())
    wanted = declared(live_providers.name("host"), "CUSTOM_ROOST_OWNER_OTHER")
    with pytest.raises(DeclarationRefused, match="the trait of another owner"):
        reporter.declare(wanted, live_providers.name("host"), host)


def test_the_record_of_an_unchanged_host_is_saved_once(
    transport: CountingTransport, tmp_path: Path
) -> None:
    saved: list[str] = []

    class WatchedStore(FileOwnershipStore):
        def save(self, root_uuid: str, record: OwnershipRecord) -> None:
            saved.append(root_uuid)
            super().save(root_uuid, record)

    live_providers = LiveProviders(transport)
    host = live_providers.add("host")
    reporter = DeclarativeReporter(Reporter(transport), "agent", WatchedStore("agent", tmp_path))
    for _ in range(3):
        reporter.declare(
            declared(live_providers.name("host"), AVX), live_providers.name("host"), host
        )
    assert saved == [host]


def test_a_new_host_gets_the_uuid_of_its_declaration(
    transport: CountingTransport,
) -> None:
    live_providers = LiveProviders(transport)
    name, uuid = live_providers.name("host"), live_providers.uuid("host")
    wanted = Declaration((DeclaredProvider(name, uuid=uuid, traits=frozenset({AVX})),))
    DeclarativeReporter(Reporter(transport), "agent", InMemoryOwnershipStore()).declare(
        wanted, name
    )
    assert AVX in live_providers.traits("host")


def test_each_trait_is_asked_for_once(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    host, name = live_providers.add("host"), live_providers.name("host")
    reporter = DeclarativeReporter(Reporter(transport), "agent", InMemoryOwnershipStore())
    transport.requests.clear()
    for total in (8, 9):
        reporter.declare(declared(name, AVX, VCPU=total), name, host)
    asked = [str(request) for request in transport.requests if AVX in request.path]
    assert asked == [f"GET /traits?name=in:{AVX}"]
