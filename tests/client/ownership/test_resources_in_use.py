"""Undeclared resources that are in use stay until their consumers release them."""

from __future__ import annotations

from support.client.declarations import HostOwner, declared, kept_providers
from support.client.operator_edits import Operator
from support.client.provider_trees import stored
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

OWNER_TRAIT = "CUSTOM_ROOST_OWNER_AGENT"


def test_inventory_in_use_is_kept_until_it_is_free(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    content = {"VCPU": {"total": 8}, "DISK_GB": {"total": 8}}
    agent.declare(declared(host, inventories=content, traits=["CUSTOM_FAST"]))
    consumer = operator.claim(host, "VCPU")
    report = agent.declare(declared(host, inventories={"DISK_GB": {"total": 9}}))
    assert kept_providers(report) == [host]
    found = operator.tree(host)[host]
    assert found.inventories == stored({"VCPU": {"total": 8}, "DISK_GB": {"total": 9}})
    assert found.traits == {OWNER_TRAIT}
    operator.release(consumer)
    report = agent.declare(declared(host, inventories={"DISK_GB": {"total": 9}}))
    assert report.kept == ()
    assert operator.tree(host)[host].inventories == stored({"DISK_GB": {"total": 9}})


def test_providers_in_use_are_kept_until_they_are_free_and_free_ones_are_deleted_at_once(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    content = {"VCPU": {"total": 8}}
    used = [f"{host}-0", f"{host}-1"]
    # Children are deleted before the deletion of their parent is refused.
    free = [declared(f"{name}-device", name, inventories=content) for name in used]
    agent.declare(
        declared(host), *(declared(name, host, inventories=content) for name in used), *free
    )
    consumers = [operator.claim(name, "VCPU") for name in used]
    report = agent.declare(declared(host))
    # A line for the provider, and one for its inventory.
    assert sorted(kept_providers(report)) == sorted(used * 2)
    assert operator.tree(host).keys() == {host, *used}
    for consumer in consumers:
        operator.release(consumer)
    assert agent.declare(declared(host)).kept == ()
    assert operator.tree(host).keys() == {host}


@one_server
def test_usages_are_read_before_anything_is_written(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    names = [f"{host}-{number}" for number in range(3)]
    content = {"VCPU": {"total": 8}}
    agent.declare(declared(host), *(declared(name, host, inventories=content) for name in names))
    for name in names:
        operator.claim(name, "VCPU")
    transport.forget()
    for _ in range(2):
        assert len(agent.declare(declared(host)).kept) == 2 * len(names)
        assert transport.writes == []
    # A claim changes the generation, but no write was refused: the tree is not read again.
    assert len(transport.requests) == 2 * len(names)


@one_server
def test_resources_that_are_claimed_after_the_usages_were_read_are_kept(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    tampering = TamperingTransport(transport)
    agent = HostOwner(tampering, host)
    agent.declare(
        declared(host), declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}})
    )
    tampering.before("DELETE *", lambda: operator.claim(f"{host}-numa", "VCPU"))
    assert kept_providers(agent.declare(declared(host))) == [f"{host}-numa"] * 2
    assert f"{host}-numa" in operator.tree(host)


@one_server
def test_a_provider_that_another_writer_deleted_is_no_error(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    agent.declare(
        declared(host), declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}})
    )
    operator.delete(f"{host}-numa")
    assert agent.declare(declared(host)).kept == ()
    assert operator.tree(host).keys() == {host}


def test_free_inventory_is_removed_from_a_provider_that_is_in_use(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    operator.set_inventory(host, "VCPU", total=8)
    operator.claim(host, "VCPU")
    agent = HostOwner(transport, host)
    content = {"CUSTOM_LICENCE": {"total": 5}}
    agent.declare(
        declared(host, inventories=content), declared(f"{host}-numa", host, inventories=content)
    )
    operator.claim(f"{host}-numa", "CUSTOM_LICENCE")
    report = agent.declare(declared(host))
    assert operator.tree(host)[host].inventories == stored({"VCPU": {"total": 8}})
    assert host not in kept_providers(report)
