"""A declaration of several trees is divided by the trees of the server."""

from __future__ import annotations

import pytest

from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.known_server import KnownServer
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.ownership.tree_application import tree_declarations, withdrawals
from roost.client.placement import Placement
from roost.client.reading import lookup
from roost.client.reporting.reporter import Reporter
from roost.model.trees.declaration import Declaration, DeclaredProvider
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import one_server


@one_server
def test_providers_of_one_tree_are_declared_together(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    live_providers.add("host")
    live_providers.add("numa", "host")
    host, numa = (
        DeclaredProvider(live_providers.name("host")),
        DeclaredProvider(live_providers.name("numa")),
    )
    new = DeclaredProvider(live_providers.name("new"), uuid=live_providers.uuid("new"))
    below = [
        DeclaredProvider(live_providers.name(short), parent)
        for short, parent in (("gpu", numa.name), ("disk", new.name), ("nic", host.name))
    ]
    gpu, disk, nic = below
    found = tree_declarations(Placement(transport), Declaration((numa, new, host, gpu, disk, nic)))
    assert [(tree.name, tree.uuid, tree.root_uuid) for tree in found] == [
        (numa.name, live_providers.uuid("numa"), live_providers.uuid("host")),
        (new.name, live_providers.uuid("new"), live_providers.uuid("new")),
    ]
    assert [tree.declaration for tree in found] == [
        Declaration((numa, gpu, host, nic)),
        Declaration((new, disk)),
    ]


@one_server
@pytest.mark.parametrize("with_uuid", [True, False])
def test_one_list_finds_many_trees(
    transport: CountingTransport, monkeypatch: pytest.MonkeyPatch, with_uuid: bool
) -> None:
    live_providers = LiveProviders(transport)
    live_providers.add("a")
    live_providers.add("b", "a")
    declaration = Declaration(
        tuple(
            DeclaredProvider(
                live_providers.name(short), uuid=live_providers.uuid(short) if with_uuid else None
            )
            for short in ("b", "c", "d")
        )
    )
    expected = tree_declarations(Placement(transport), declaration)
    monkeypatch.setattr(lookup, "LISTED_FROM", 3)
    transport.forget()
    found = tree_declarations(Placement(transport), declaration)
    assert [request.path for request in transport.requests] == ["/resource_providers"]
    assert [tree.name for tree in found] == [tree.name for tree in expected]
    assert (found[0].uuid, found[0].root_uuid) == (
        live_providers.uuid("b"),
        live_providers.uuid("a"),
    )


@one_server
def test_an_applied_tree_is_read_again_the_next_time(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    live_providers.add("host")
    reporter = DeclarativeReporter(Reporter(transport), "me", InMemoryOwnershipStore())
    declaration = Declaration((DeclaredProvider(live_providers.name("host")),))
    (tree,) = tree_declarations(Placement(transport), declaration)
    for dry_run in (True, False, True):
        transport.forget()
        tree.apply(reporter, dry_run=dry_run)
        assert any("in_tree=" in request.path for request in transport.requests)


@one_server
def test_two_recorded_trees_that_became_one_are_withdrawn_together(
    transport: CountingTransport,
) -> None:
    live_providers = LiveProviders(transport)
    live_providers.add("rack")
    live_providers.add("host", "rack")
    store = InMemoryOwnershipStore()
    for short in ("rack", "host"):
        owned = OwnedProvider(live_providers.name(short), traits=frozenset({"CUSTOM_GOLD"}))
        store.save(live_providers.uuid(short), OwnershipRecord({live_providers.uuid(short): owned}))
    placement = Placement(transport)
    (found,) = withdrawals(placement, store, [], KnownServer(placement))
    assert found.root_uuid == live_providers.uuid("rack")
    found.apply(DeclarativeReporter(Reporter(transport), "me", store), dry_run=False)
    assert store.trees() == []
