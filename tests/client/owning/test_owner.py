"""Several writers and an operator on one host, on live servers."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from roost.client.declaration import DeclaredProvider
from roost.client.errors import DeclarationRefused, NotConfigured
from roost.client.owning.owner import Owner, Report
from roost.client.owning.ownership import Owned
from roost.client.owning.records import FileRecords, MemoryRecords, Records
from roost.client.provider_tree import SHARING_TRAIT
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Request, Response, Transport
from support.by_hand import Operator, Picture
from support.counting import CountingTransport
from support.forest import stored
from support.live_server import LiveServer
from support.owning import declaration, declared

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"
# For what does not depend on how a server answers.
on_one_server = pytest.mark.parametrize("server", ["roost"], indirect=True)

MARK, OTHER_MARK = "CUSTOM_OWNER_AGENT", "CUSTOM_OWNER_OTHER"


@pytest.fixture
def operator(server: LiveServer) -> Operator:
    return Operator(server.client())


@pytest.fixture
def host() -> str:
    return f"host-{uuid4()}"


class Writer:
    """An owner on one host, with a reporter of its own."""

    def __init__(
        self,
        transport: Transport,
        host: str,
        owner: str = "agent",
        records: Records | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        self.host = host
        self.records = records or MemoryRecords()
        self._owner = Owner(Reporter(transport), owner, self.records, adopt=adopt)

    def declare(self, *providers: DeclaredProvider, uuid: str | None = None) -> Report:
        return self._owner.declare(declaration(*providers), self.host, uuid)

    def preview(self, *providers: DeclaredProvider, uuid: str | None = None) -> Report:
        return self._owner.preview(declaration(*providers), self.host, uuid)


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


@on_one_server
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


@on_one_server
def test_a_host_is_not_renamed(transport: CountingTransport, operator: Operator, host: str) -> None:
    Writer(transport, host).declare(declared(host))
    uuid = operator.uuid(host)
    renamed = Writer(transport, f"{host}-new")
    with pytest.raises(DeclarationRefused, match="not renamed"):
        renamed.declare(declared(f"{host}-new"), uuid=uuid)
    assert operator.uuid(host) == uuid
    assert operator.uuid(f"{host}-new") is None


@on_one_server
def test_a_report_without_news_writes_nothing(transport: CountingTransport, host: str) -> None:
    wanted = declared(host, inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_FAST"])
    Writer(transport, host).declare(wanted)
    transport.forget()
    assert not Writer(transport, host).declare(wanted).difference
    assert transport.writes == []


# -- restarts


@on_one_server
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


class Death(BaseException):
    """The end of a process: nothing that anybody catches."""


class Mortal:
    """A transport whose process dies before or after some write."""

    def __init__(self, inner: Transport, writes: int) -> None:
        self._inner = inner
        self._writes = writes

    def send(self, request: Request) -> Response:
        if request.method == "GET":
            return self._inner.send(request)
        if self._writes == 0:
            raise Death
        self._writes -= 1
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()


@on_one_server
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
            Writer(Mortal(transport, writes), host, records=records).declare(
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


@on_one_server
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


@on_one_server
def test_nothing_is_written_that_could_not_be_remembered(
    transport: CountingTransport, host: str, tmp_path: Path
) -> None:
    (tmp_path / "agent").write_text("not a directory")
    writer = Writer(transport, host, records=FileRecords("agent", tmp_path))
    with pytest.raises(NotConfigured):
        writer.declare(declared(host))
    assert transport.writes == []


@on_one_server
def test_an_owner_that_lost_its_memory_finds_its_providers_by_their_mark(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    content = {"VCPU": {"total": 8}}
    Writer(transport, host).declare(
        declared(host, traits=["CUSTOM_FAST"]),
        declared(f"{host}-0", host, inventories=content, traits=["CUSTOM_FAST"]),
        declared(f"{host}-1", host, inventories=content),
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


@on_one_server
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


# -- what is in use


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


@on_one_server
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


# -- looking first


@on_one_server
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
