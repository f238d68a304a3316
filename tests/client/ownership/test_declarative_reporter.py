"""Several owners and an operator on one host, on live servers."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.errors import DeclarationRefused
from roost.client.ownership.store import FileOwnershipStore
from roost.client.provider_tree import SHARING_TRAIT
from support.client.declarations import HostOwner, declared, kept_providers
from support.client.operator_edits import Operator, Picture
from support.client.provider_trees import stored
from support.transports.counting import CountingTransport
from support.transports.tampering import one_server

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"
AGENT_TRAIT, OTHER_TRAIT = "CUSTOM_ROOST_OWNER_AGENT", "CUSTOM_ROOST_OWNER_OTHER"


# -- several owners


def test_each_owner_and_the_operator_change_their_part_of_a_host(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent, other = HostOwner(transport, host), HostOwner(transport, host, "other")
    agent.declare(
        declared(host, inventories={"VCPU": {"total": 8}}, traits=["HW_CPU_X86_AVX"]),
        declared(f"{host}-numa", host, aggregates=[RACK]),
    )
    other.declare(
        declared(host, inventories={"CUSTOM_LICENCE": {"total": 5}}, aggregates=[ROW]),
        declared(f"{host}-numa", host, traits=["CUSTOM_FAST"]),
        declared(f"{host}-device", f"{host}-numa", inventories={"CUSTOM_PORT": {"total": 2}}),
    )
    operator.add_traits(host, "CUSTOM_BY_HAND")
    operator.set_inventory(host, "VCPU", reserved=1, allocation_ratio=4.0)
    operator.set_inventory(f"{host}-numa", "CUSTOM_BY_HAND", total=3)
    # The agent's reporter read the tree before these changes.
    agent.declare(
        declared(host, inventories={"VCPU": {"total": 16}}, traits=["HW_CPU_X86_AVX2"]),
        declared(f"{host}-numa", host),
    )
    assert operator.tree(host) == {
        host: Picture(
            None,
            stored(
                {
                    "VCPU": {"total": 16, "reserved": 1, "allocation_ratio": 4.0},
                    "CUSTOM_LICENCE": {"total": 5},
                }
            ),
            frozenset({AGENT_TRAIT, "HW_CPU_X86_AVX2", "CUSTOM_BY_HAND"}),
            frozenset({ROW}),
        ),
        f"{host}-numa": Picture(
            host,
            stored({"CUSTOM_BY_HAND": {"total": 3}}),
            frozenset({AGENT_TRAIT, "CUSTOM_FAST"}),
            frozenset(),
        ),
        f"{host}-device": Picture(
            f"{host}-numa",
            stored({"CUSTOM_PORT": {"total": 2}}),
            frozenset({OTHER_TRAIT}),
            frozenset(),
        ),
    }


def test_an_empty_declaration_leaves_what_other_writers_put_there(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent, other = HostOwner(transport, host), HostOwner(transport, host, "other")
    agent.declare(
        declared(host, inventories={"VCPU": {"total": 8}}),
        declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}}),
        declared(f"{host}-free", host, inventories={"VCPU": {"total": 8}}),
    )
    operator.set_inventory(f"{host}-numa", "CUSTOM_BY_HAND", total=3)
    other.declare(declared(host, traits=["CUSTOM_FAST"]))
    report = agent.declare()
    assert kept_providers(report) == [f"{host}-numa", host]
    theirs = stored({"CUSTOM_BY_HAND": {"total": 3}})
    assert operator.tree(host) == {
        host: Picture(None, {}, frozenset({AGENT_TRAIT, "CUSTOM_FAST"}), frozenset()),
        f"{host}-numa": Picture(host, theirs, frozenset({AGENT_TRAIT}), frozenset()),
    }


@one_server
def test_a_tree_that_is_no_longer_declared_is_deleted_once(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    agent.declare(declared(host, traits=["CUSTOM_FAST"]), declared(f"{host}-numa", host))
    uuid = operator.uuid(host)
    agent.declare(uuid=uuid)
    agent.declare(uuid=uuid)
    assert operator.tree(host) == {}
    assert agent.store.trees() == []


def test_two_owners_may_create_the_same_host_at_the_same_time(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent, other = HostOwner(transport, host), HostOwner(transport, host, "other")
    uuid = str(uuid4())
    wanted = declared(host, inventories={"CUSTOM_LICENCE": {"total": 5}}, aggregates=[ROW])
    other.preview(wanted, uuid=uuid)
    agent.declare(declared(host, inventories={"VCPU": {"total": 8}}, aggregates=[RACK]), uuid=uuid)
    # The reporter of `other` read the tree before the host was created.
    other.declare(wanted, uuid=uuid)
    both = stored({"VCPU": {"total": 8}, "CUSTOM_LICENCE": {"total": 5}})
    found = operator.tree(host)[host]
    assert found.inventories == both
    assert found.aggregates == {RACK, ROW}
    assert AGENT_TRAIT in found.traits


def test_a_provider_that_changed_since_it_was_read_is_not_deleted(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    agent.declare(declared(host), declared(f"{host}-numa", host))
    operator.set_inventory(f"{host}-numa", "CUSTOM_BY_HAND", total=3)
    report = agent.declare(declared(host))
    assert kept_providers(report) == [f"{host}-numa"]
    assert f"{host}-numa" in operator.tree(host)


def test_aggregates_that_another_writer_added_without_a_new_generation_stay(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = HostOwner(transport, host)
    agent.declare(declared(host))
    operator.add_aggregates_without_generation(host, ROW)
    agent.declare(declared(host, aggregates=[RACK]))
    assert operator.tree(host)[host].aggregates == {RACK, ROW}


def test_a_sharing_provider_of_the_same_owner_survives_the_first_report_of_a_host(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    rack = str(uuid4())
    content = {"DISK_GB": {"total": 100}}
    pool = declared(f"{host}-pool", inventories=content, traits=[SHARING_TRAIT], aggregates=[rack])
    HostOwner(transport, f"{host}-pool").declare(pool)
    operator.create(host)
    operator.add_aggregates(host, rack)
    HostOwner(transport, host).declare(declared(host, traits=["CUSTOM_FAST"]))
    HostOwner(transport, host, adopt=True).declare(declared(host, traits=["CUSTOM_FAST"]))
    assert operator.tree(f"{host}-pool")[f"{host}-pool"].inventories == stored(content)


@one_server
def test_a_host_is_not_renamed(transport: CountingTransport, operator: Operator, host: str) -> None:
    HostOwner(transport, host).declare(declared(host))
    uuid = operator.uuid(host)
    renamed = HostOwner(transport, f"{host}-new")
    with pytest.raises(DeclarationRefused, match="not renamed"):
        renamed.declare(declared(f"{host}-new"), uuid=uuid)
    assert operator.uuid(host) == uuid
    assert operator.uuid(f"{host}-new") is None


@one_server
def test_an_unchanged_declaration_writes_nothing(transport: CountingTransport, host: str) -> None:
    wanted = declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"])
    HostOwner(transport, host).declare(wanted)
    transport.forget()
    assert not HostOwner(transport, host).declare(wanted).difference
    assert transport.writes == []


# -- preview


@one_server
def test_a_preview_shows_the_changes_and_writes_nothing(
    transport: CountingTransport, operator: Operator, host: str, tmp_path: Path
) -> None:
    agent = HostOwner(transport, host, store=FileOwnershipStore("agent", tmp_path))
    wanted = declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"])
    lines = agent.preview(wanted).difference.lines()
    assert f"{host}: created" in lines
    assert f"{host}: inventory VCPU added (total 8)" in lines
    assert transport.writes == []
    assert list(tmp_path.iterdir()) == []
    assert agent.declare(wanted).difference.lines() == lines
    transport.forget()
    stored_record = agent.store.load(agent.store.trees()[0])
    operator.set_inventory(host, "CUSTOM_BY_HAND", total=3)
    again = HostOwner(transport, host, store=agent.store)
    report = again.preview()
    assert kept_providers(report) == [host]
    assert f"{host}: inventory VCPU removed" in report.difference.lines()
    assert transport.writes == []
    assert agent.store.load(agent.store.trees()[0]) == stored_record
