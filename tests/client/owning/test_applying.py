"""A declaration of several trees: what belongs together is declared together."""

from __future__ import annotations

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.owning.applying import parts
from roost.client.owning.owner import Owner
from roost.client.owning.records import MemoryRecords
from roost.client.reporting.placement import Placement
from roost.client.reporting.reporter import Reporter
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.tampering import one_server


@one_server
def test_what_is_in_one_tree_on_the_server_is_one_part(transport: CountingTransport) -> None:
    world = RemoteWorld(transport)
    world.add("host")
    world.add("numa", "host")
    host, numa = DeclaredProvider(world.name("host")), DeclaredProvider(world.name("numa"))
    new = DeclaredProvider(world.name("new"), uuid=world.uuid("new"))
    below = [
        DeclaredProvider(world.name(short), parent)
        for short, parent in (("gpu", numa.name), ("disk", new.name), ("nic", host.name))
    ]
    gpu, disk, nic = below
    found = parts(Placement(transport), Declaration((numa, new, host, gpu, disk, nic)))
    assert [(part.name, part.uuid, part.root_uuid) for part in found] == [
        (numa.name, world.uuid("numa"), world.uuid("host")),
        (new.name, world.uuid("new"), world.uuid("new")),
    ]
    assert [part.declaration for part in found] == [
        Declaration((numa, gpu, host, nic)),
        Declaration((new, disk)),
    ]


@one_server
def test_a_tree_that_is_done_is_not_kept(transport: CountingTransport) -> None:
    world = RemoteWorld(transport)
    world.add("host")
    owner = Owner(Reporter(transport), "me", MemoryRecords())
    declaration = Declaration((DeclaredProvider(world.name("host")),))
    (part,) = parts(Placement(transport), declaration)
    for dry_run in (True, False, True):
        transport.forget()
        part.apply(owner, dry_run=dry_run)
        assert any("in_tree=" in request.path for request in transport.requests)
