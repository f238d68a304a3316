"""Several writers and an operator on one host, on live servers."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.errors import DeclarationRefused
from roost.client.owning.records import FileRecords
from roost.client.provider_tree import SHARING_TRAIT
from support.by_hand import Operator, Picture
from support.counting import CountingTransport
from support.forest import stored
from support.owning import Writer, declared
from support.tampering import one_server

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"
MARK, OTHER_MARK = "CUSTOM_OWNER_AGENT", "CUSTOM_OWNER_OTHER"


# -- several writers


def test_each_writer_and_the_operator_have_their_part_of_a_host(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent, other = Writer(transport, host), Writer(transport, host, "other")
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
    # What the agent's reporter has read is older than all of this.
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
            frozenset({MARK, "HW_CPU_X86_AVX2", "CUSTOM_BY_HAND"}),
            frozenset({ROW}),
        ),
        f"{host}-numa": Picture(
            host,
            stored({"CUSTOM_BY_HAND": {"total": 3}}),
            frozenset({MARK, "CUSTOM_FAST"}),
            frozenset(),
        ),
        f"{host}-device": Picture(
            f"{host}-numa",
            stored({"CUSTOM_PORT": {"total": 2}}),
            frozenset({OTHER_MARK}),
            frozenset(),
        ),
    }


def test_who_withdraws_everything_leaves_what_is_the_others(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent, other = Writer(transport, host), Writer(transport, host, "other")
    agent.declare(
        declared(host, inventories={"VCPU": {"total": 8}}),
        declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}}),
        declared(f"{host}-free", host, inventories={"VCPU": {"total": 8}}),
    )
    operator.set_inventory(f"{host}-numa", "CUSTOM_BY_HAND", total=3)
    other.declare(declared(host, traits=["CUSTOM_FAST"]))
    report = agent.declare()
    assert report.kept == (
        f"{host}-numa: not deleted, others have inventory on it (CUSTOM_BY_HAND)",
        f"{host}: not deleted, there are providers below it",
    )
    theirs = stored({"CUSTOM_BY_HAND": {"total": 3}})
    assert operator.tree(host) == {
        host: Picture(None, {}, frozenset({MARK, "CUSTOM_FAST"}), frozenset()),
        f"{host}-numa": Picture(host, theirs, frozenset({MARK}), frozenset()),
    }


@one_server
def test_a_tree_of_which_nothing_is_declared_any_more_goes_and_stays_away(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    agent.declare(declared(host, traits=["CUSTOM_FAST"]), declared(f"{host}-numa", host))
    uuid = operator.uuid(host)
    agent.declare(uuid=uuid)
    agent.declare(uuid=uuid)
    assert operator.tree(host) == {}
    assert agent.records.trees() == []


def test_two_writers_may_begin_the_same_host_at_the_same_time(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent, other = Writer(transport, host), Writer(transport, host, "other")
    uuid = str(uuid4())
    wanted = declared(host, inventories={"CUSTOM_LICENCE": {"total": 5}}, aggregates=[ROW])
    other.preview(wanted, uuid=uuid)
    agent.declare(declared(host, inventories={"VCPU": {"total": 8}}, aggregates=[RACK]), uuid=uuid)
    # The other one still believes that there is no such host.
    other.declare(wanted, uuid=uuid)
    both = stored({"VCPU": {"total": 8}, "CUSTOM_LICENCE": {"total": 5}})
    found = operator.tree(host)[host]
    assert found.inventories == both
    assert found.aggregates == {RACK, ROW}
    assert MARK in found.traits


def test_nothing_is_deleted_on_the_word_of_an_old_picture(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    agent.declare(declared(host), declared(f"{host}-numa", host))
    operator.set_inventory(f"{host}-numa", "CUSTOM_BY_HAND", total=3)
    report = agent.declare(declared(host))
    assert report.kept == (
        f"{host}-numa: not deleted, others have inventory on it (CUSTOM_BY_HAND)",
    )
    assert f"{host}-numa" in operator.tree(host)


def test_aggregates_that_moved_no_generation_stay(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    agent = Writer(transport, host)
    agent.declare(declared(host))
    operator.add_aggregates_as_of_old(host, ROW)
    agent.declare(declared(host, aggregates=[RACK]))
    assert operator.tree(host)[host].aggregates == {RACK, ROW}


def test_a_pool_of_the_same_owner_survives_the_first_report_of_a_host_that_uses_it(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    rack = str(uuid4())
    content = {"DISK_GB": {"total": 100}}
    pool = declared(f"{host}-pool", inventories=content, traits=[SHARING_TRAIT], aggregates=[rack])
    Writer(transport, f"{host}-pool").declare(pool)
    operator.create(host)
    operator.add_aggregates(host, rack)
    Writer(transport, host).declare(declared(host, traits=["CUSTOM_FAST"]))
    Writer(transport, host, adopt=True).declare(declared(host, traits=["CUSTOM_FAST"]))
    assert operator.tree(f"{host}-pool")[f"{host}-pool"].inventories == stored(content)


@one_server
def test_a_host_is_not_renamed(transport: CountingTransport, operator: Operator, host: str) -> None:
    Writer(transport, host).declare(declared(host))
    uuid = operator.uuid(host)
    renamed = Writer(transport, f"{host}-new")
    with pytest.raises(DeclarationRefused, match="not renamed"):
        renamed.declare(declared(f"{host}-new"), uuid=uuid)
    assert operator.uuid(host) == uuid
    assert operator.uuid(f"{host}-new") is None


@one_server
def test_a_report_without_news_writes_nothing(transport: CountingTransport, host: str) -> None:
    wanted = declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"])
    Writer(transport, host).declare(wanted)
    transport.forget()
    assert not Writer(transport, host).declare(wanted).difference
    assert transport.writes == []


# -- looking first


@one_server
def test_a_preview_tells_what_a_report_would_do_and_leaves_no_trace(
    transport: CountingTransport, operator: Operator, host: str, tmp_path: Path
) -> None:
    agent = Writer(transport, host, records=FileRecords("agent", tmp_path))
    wanted = declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"])
    lines = agent.preview(wanted).difference.lines()
    assert f"{host}: created" in lines
    assert f"{host}: inventory VCPU added (total 8)" in lines
    assert transport.writes == []
    assert list(tmp_path.iterdir()) == []
    assert agent.declare(wanted).difference.lines() == lines
    transport.forget()
    remembered = agent.records.load(agent.records.trees()[0])
    operator.set_inventory(host, "CUSTOM_BY_HAND", total=3)
    again = Writer(transport, host, records=agent.records)
    report = again.preview()
    assert report.kept == (f"{host}: not deleted, others have inventory on it (CUSTOM_BY_HAND)",)
    assert f"{host}: inventory VCPU removed" in report.difference.lines()
    assert transport.writes == []
    assert agent.records.load(agent.records.trees()[0]) == remembered
