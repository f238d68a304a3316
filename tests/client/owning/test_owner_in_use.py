"""What is withdrawn while somebody uses it stays until it is free."""

from __future__ import annotations

from support.by_hand import Operator
from support.counting import CountingTransport
from support.forest import stored
from support.owning import Writer, declared
from support.tampering import TamperingTransport, one_server

MARK = "CUSTOM_OWNER_AGENT"


def test_inventory_in_use_is_kept_until_it_is_free(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    content = {"VCPU": {"total": 8}, "DISK_GB": {"total": 8}}
    agent.declare(declared(host, inventories=content, traits=["CUSTOM_FAST"]))
    consumer = operator.claim(host, "VCPU")
    report = agent.declare(declared(host, inventories={"DISK_GB": {"total": 9}}))
    assert report.kept == (f"{host}: inventory VCPU not removed, in use",)
    found = operator.tree(host)[host]
    assert found.inventories == stored({"VCPU": {"total": 8}, "DISK_GB": {"total": 9}})
    assert found.traits == {MARK}
    operator.release(consumer)
    report = agent.declare(declared(host, inventories={"DISK_GB": {"total": 9}}))
    assert report.kept == ()
    assert operator.tree(host)[host].inventories == stored({"DISK_GB": {"total": 9}})


def test_providers_in_use_are_kept_until_they_are_free_and_others_go_at_once(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    content = {"VCPU": {"total": 8}}
    used = [f"{host}-0", f"{host}-1"]
    # What is below goes first, so it is gone by the time that the other is refused.
    free = [declared(f"{name}-device", name, inventories=content) for name in used]
    agent.declare(
        declared(host), *(declared(name, host, inventories=content) for name in used), *free
    )
    consumers = [operator.claim(name, "VCPU") for name in used]
    report = agent.declare(declared(host))
    assert set(report.kept) == {
        f"{name}: {what}"
        for name in used
        for what in ("not deleted, it is in use", "inventory VCPU not removed, in use")
    }
    assert operator.tree(host).keys() == {host, *used}
    for consumer in consumers:
        operator.release(consumer)
    assert agent.declare(declared(host)).kept == ()
    assert operator.tree(host).keys() == {host}


@one_server
def test_what_is_in_use_is_known_before_it_is_tried(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    names = [f"{host}-{number}" for number in range(3)]
    content = {"VCPU": {"total": 8}}
    agent.declare(declared(host), *(declared(name, host, inventories=content) for name in names))
    for name in names:
        operator.claim(name, "VCPU")
    transport.forget()
    for _ in range(2):
        assert len(agent.declare(declared(host)).kept) == 2 * len(names)
        assert transport.writes == []
    # A claim moves the generation, but nobody refused anything: nothing has to be read again.
    assert len(transport.requests) == 2 * len(names)


@one_server
def test_what_somebody_takes_in_the_last_moment_is_kept_as_well(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    tampering = TamperingTransport(transport)
    agent = Writer(tampering, host)
    agent.declare(
        declared(host), declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}})
    )
    tampering.before("DELETE *", lambda: operator.claim(f"{host}-numa", "VCPU"))
    assert agent.declare(declared(host)).kept == (
        f"{host}-numa: not deleted, it is in use",
        f"{host}-numa: inventory VCPU not removed, in use",
    )


@one_server
def test_what_somebody_else_has_deleted_is_as_good_as_deleted(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    agent.declare(
        declared(host), declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}})
    )
    operator.delete(f"{host}-numa")
    assert agent.declare(declared(host)).kept == ()
    assert operator.tree(host).keys() == {host}


def test_free_inventory_goes_even_if_the_same_provider_is_used_otherwise(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    operator.set_inventory(host, "VCPU", total=8)
    operator.claim(host, "VCPU")
    agent = Writer(transport, host)
    content = {"CUSTOM_LICENCE": {"total": 5}}
    agent.declare(
        declared(host, inventories=content), declared(f"{host}-numa", host, inventories=content)
    )
    operator.claim(f"{host}-numa", "CUSTOM_LICENCE")
    report = agent.declare(declared(host))
    assert operator.tree(host)[host].inventories == stored({"VCPU": {"total": 8}})
    assert f"{host}: inventory CUSTOM_LICENCE not removed, in use" not in report.kept
