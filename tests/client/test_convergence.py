"""After any faults the server's tree converges to the last declaration of each writer.

One tree has four writers: two owners that declare, a compute service whose driver edits the tree,
and an operator. The requests of the owners and of the compute service go through a proxy. The proxy
answers conflicts, closes connections, loses and delays answers, and has the operator write in
between. Reports fail. Processes crash, and start again with their ownership records only. Then the
faults end, each writer reports once more, and the tree is compared with the last declarations.

An owner declares and keeps its records in memory, as a program does. Or a driver finds the
declaration, and the records are files, as with the agent. Such an owner keeps what is missing for
some reports and minutes, for instance a device that is lost at the end. An operator accepts the
loss of most of it.

The declarations of the owners overlap. The second owner of an item finds it on the server, and does
not own it. If the first owner no longer declares the item, its report removes the item. The next
report of the second owner adds it again. So two rounds of reports end the test, and a third
round changes nothing. With drivers, three rounds pass until what is missing is withdrawn. The
providers of one owner may wait for those of another below them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roost.client.drivers.driver import DeclaringDriver
from roost.client.errors import PlacementError, SuddenLoss
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.store import (
    FileOwnershipStore,
    InMemoryOwnershipStore,
    OwnershipStore,
)
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.client.transport.http import HttpTransport
from roost.client.transport.retrying import RetryPolicy
from roost.model.trees.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.model.trees.difference import Difference
from support.client.operator_edits import Operator, Picture
from support.client.provider_trees import stored
from support.client.random_choices import Choices
from support.client.tree_writers import (
    AGENT,
    BY_HAND,
    LICENCE,
    OTHER,
    PARENTS,
    Compute,
    OperatorWork,
    a_compute,
    a_declaration,
)
from support.properties import many
from support.servers.faulty_proxy import Fault, FaultyProxy, Step
from support.servers.live_server import LiveServer
from support.transports.dying import DyingTransport, ProcessDeath
from support.transports.tampering import reference_in_the_long_run

OWNER_TRAITS = frozenset({"CUSTOM_ROOST_OWNER_AGENT", "CUSTOM_ROOST_OWNER_OTHER"})

# A reporter compares generations after the first time, and reads the whole tree after the second.
REFRESH, REREAD = 301.0, 3601.0

# Two until what is missing is withdrawn; one for providers that wait for those below them, and one
# for an item that the second owner adds again.
ROUNDS_OF_DRIVERS = 4

LONG_STORY = [Random(number).randbytes(24) for number in range(10)]


# -- the processes that report


class Finding(DeclaringDriver):
    """A driver that finds what the test wants."""

    def __init__(self, wanted: Declaration) -> None:
        self._wanted = wanted

    def declare(self, nodename: str) -> Declaration:
        return self._wanted


class Process:
    """A process that reports one host; a restart keeps only its ownership records.

    With a directory for its records, an owner has a driver, and else it declares.
    """

    def __init__(
        self, shared_tree: SharedTree, owner: str | None, records: Path | None = None
    ) -> None:
        self._shared_tree = shared_tree
        self._owner = owner
        self._records = records
        self._store: OwnershipStore = InMemoryOwnershipStore()
        self._transport = DyingTransport(shared_tree.transport)
        self.start()

    @property
    def has_driver(self) -> bool:
        return self._records is not None

    def start(self) -> None:
        self._transport.writes_left = None
        self._reporter = Reporter(self._transport, clock=self._shared_tree.clock)
        if self._owner is not None and self._records is not None:
            self._store = FileOwnershipStore(self._owner, self._records)

    def report(self, wanted: Declaration | Compute, *, accept_loss: bool = False) -> Difference:
        host, uuid = self._shared_tree.host, self._shared_tree.uuid
        if isinstance(wanted, Compute):
            return self._reporter.report(wanted, host, uuid)
        assert self._owner is not None
        reporter = DeclarativeReporter(
            self._reporter,
            self._owner,
            self._store,
            accept_loss=accept_loss,
            clock=self._shared_tree.clock,
        )
        if not self.has_driver:
            return reporter.declare(wanted, host, uuid).difference
        return reporter.report(Finding(wanted), host, uuid).difference

    def report_with_faults(self, wanted: Declaration | Compute, writes_left: int | None) -> None:
        """Report through the faults; crash before a write, unless `writes_left` is `None`."""
        self._transport.writes_left = writes_left
        try:
            with suppress(PlacementError):
                self.report(wanted)
        except ProcessDeath:
            self.start()
        self._transport.writes_left = None


class Switch:
    """A transport through the proxy, or straight to the server."""

    def __init__(self, faulty: Transport, faithful: Transport) -> None:
        self._faulty = faulty
        self._faithful = faithful
        self.is_faithful = False

    def send(self, request: PlacementRequest) -> PlacementResponse:
        return (self._faithful if self.is_faithful else self._faulty).send(request)

    def close(self) -> None:
        self._faulty.close()
        self._faithful.close()


# -- the tree and its writers


class SharedTree:
    """A tree on a shared server, and its writers."""

    def __init__(
        self,
        proxy: FaultyProxy,
        switch: Switch,
        hand: OperatorWork,
        by_uuid: bool,
        records: Mapping[str, Path],
    ) -> None:
        self.host = hand.host
        self.uuid = str(uuid4()) if by_uuid else None
        self.proxy = proxy
        self.transport = switch
        self.hand = hand
        self.now = 0.0
        self.processes = {name: Process(self, name, records.get(name)) for name in (AGENT, OTHER)}
        self.has_drivers = bool(records)
        self.processes["compute"] = Process(self, None)
        self.wanted: dict[str, Declaration | Compute] = {
            AGENT: a_declaration(self.host, AGENT, Choices(b"")),
            OTHER: a_declaration(self.host, OTHER, Choices(b"")),
            "compute": Compute(self.host),
        }

    def clock(self) -> float:
        return self.now

    def step(self, choices: Choices) -> None:
        """Have one process report a new declaration; the operator may write before that."""
        if choices.yes():
            self.hand.act(choices, between_reports=True)
        if choices.one([False] * 7 + [True]):
            self.now += choices.one((REFRESH, REREAD))
        who = choices.one([AGENT, OTHER, "compute"])
        process = self.processes[who]
        if choices.one([False] * 15 + [True]):
            process.start()
        writes_left = choices.one([None] * 7 + [choices.one(range(8))])
        self.wanted[who] = (
            a_compute(self.host, choices)
            if who == "compute"
            else a_declaration(self.host, who, choices)
        )
        process.report_with_faults(self.wanted[who], writes_left)
        self.proxy.settle()

    def end(self) -> None:
        """End the faults, and report some times; one more round changes nothing."""
        self.proxy.plan()
        self.proxy.settle()
        self.transport.is_faithful = True
        self.hand.finish()
        self.round(after=REREAD)
        for name in (AGENT, OTHER):
            self._lose_a_device(name)
        for _ in range(ROUNDS_OF_DRIVERS if self.has_drivers else 1):
            self.round(after=REFRESH)
        last = self.round(after=REFRESH)
        assert [line for change in last for line in change.lines()] == []

    def round(self, after: float) -> list[Difference]:
        self.now += after
        return [self._report(name) for name in self.processes]

    def _lose_a_device(self, name: str) -> None:
        """Have the driver of an owner no longer find its last provider, unless that is the host."""
        wanted = self.wanted[name]
        assert isinstance(wanted, Declaration)
        if self.processes[name].has_driver and len(wanted.providers) > 1:
            self.wanted[name] = replace(wanted, providers=wanted.providers[:-1])

    def _report(self, name: str) -> Difference:
        process, wanted = self.processes[name], self.wanted[name]
        try:
            return process.report(wanted)
        except SuddenLoss:
            return process.report(wanted, accept_loss=True)
        except PlacementError:
            # The process may have to read the tree again after an earlier failure.
            return process.report(wanted)

    # -- the expected tree

    def expected(self) -> dict[str, Picture]:
        found: dict[str, Picture] = {}
        for name, parent in PARENTS.items():
            parts = self._declared(name)
            by_hand = self._by_hand(name)
            if parts or by_hand or self._is_needed(name):
                found[self.host + name] = united(
                    None if parent is None else self.host + parent, [*parts, *by_hand]
                )
        for name, parent in self.hand.children.items():
            found[self.host + name] = united(self.host + parent, [])
        compute = self.wanted["compute"]
        assert isinstance(compute, Compute)
        if compute.has_child:
            found[compute.child] = united(
                self.host, [DeclaredProvider("part", inventories={"VGPU": {"total": 4}})]
            )
        return found

    def _declared(self, name: str) -> list[DeclaredProvider]:
        parts = []
        for wanted in self.wanted.values():
            if isinstance(wanted, Declaration):
                parts += [part for part in wanted.providers if part.name == self.host + name]
            elif name == "":
                parts.append(
                    DeclaredProvider("part", inventories=wanted.inventories, traits=wanted.traits)
                )
        return parts

    def _by_hand(self, name: str) -> list[DeclaredProvider]:
        inventories: dict[str, InventoryFields] = {}
        if name in self.hand.inventories:
            inventories[BY_HAND] = {"total": self.hand.inventories[name]}
        if name != "":
            return [DeclaredProvider("part", inventories=inventories)] if inventories else []
        inventories[LICENCE] = {"reserved": self.hand.reserved}
        return [
            DeclaredProvider(
                "part",
                inventories=inventories,
                traits=frozenset(self.hand.traits),
                aggregates=frozenset(self.hand.aggregates),
            )
        ]

    def _is_needed(self, name: str) -> bool:
        """Whether an undeclared provider stays because a writer wants a provider below it."""
        below = [child for child, parent in PARENTS.items() if parent == name]
        return name in self.hand.children.values() or any(
            self._declared(child) or self._by_hand(child) or self._is_needed(child)
            for child in below
        )


def united(parent: str | None, parts: list[DeclaredProvider]) -> Picture:
    """One provider with the declarations of all writers."""
    inventories: dict[str, dict[str, Any]] = {}
    for part in parts:
        for name, fields in part.inventories.items():
            inventories.setdefault(name, {}).update(fields)
    return Picture(
        parent,
        stored(inventories),
        frozenset().union(*(part.traits for part in parts)),
        frozenset().union(*(part.aggregates for part in parts)),
    )


# -- faults


def write_faults(shared_tree: SharedTree, drawn: bytes) -> Iterator[Step]:
    # Simple faults come first, because a failing example shrinks towards them.
    faults: list[Step] = [None] * 16
    faults += [Fault.CONFLICT, Fault.LOST_ANSWER, Fault.HANG_UP, Fault.UNAVAILABLE]
    faults += [Fault.GATEWAY_TIMEOUT, Fault.INTERNAL_ERROR, Fault.GARBLED]
    for kind, detail in zip(drawn[::2], drawn[1::2], strict=False):
        if kind % 32 < len(faults):
            yield faults[kind % 32]
        elif kind % 32 < 31:
            yield interlude(shared_tree.hand, detail)
        else:
            yield Fault.LATE if detail % 2 else Fault.SLOW


def interlude(hand: OperatorWork, detail: int) -> Callable[[], None]:
    return lambda: hand.act(Choices(bytes([detail])))


def read_faults(drawn: bytes) -> Iterator[Step]:
    faults = [Fault.UNAVAILABLE, Fault.LOST_ANSWER, Fault.HANG_UP]
    for byte in drawn:
        yield faults[byte % 3] if byte >= 200 else None


# -- the test


@contextmanager
def connections(server: LiveServer) -> Iterator[tuple[FaultyProxy, Switch]]:
    """A proxy, and a transport without waits before repetitions."""
    at_once = RetryPolicy(sleep=lambda _: None)
    with FaultyProxy(server.port) as proxy:
        switch = Switch(
            HttpTransport(proxy.url, "admin", retries=at_once),
            HttpTransport(f"http://127.0.0.1:{server.port}", "admin", retries=at_once),
        )
        try:
            yield proxy, switch
        finally:
            switch.close()


@reference_in_the_long_run
@pytest.mark.parametrize("way", ["declare", "report"])
@settings(
    max_examples=many(4),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.binary(min_size=24, max_size=24), min_size=5, max_size=10),
    by_uuid=st.booleans(),
    both=st.booleans(),
    writes=st.binary(min_size=20, max_size=80),
    reads=st.binary(max_size=60),
)
# An everyday run has few examples, and most of them are small.
@example(steps=LONG_STORY, by_uuid=True, both=True, writes=bytes(20), reads=b"")
def test_the_tree_converges_to_the_last_declarations(
    *,
    server: LiveServer,
    tmp_path_factory: pytest.TempPathFactory,
    way: str,
    steps: list[bytes],
    by_uuid: bool,
    both: bool,
    writes: bytes,
    reads: bytes,
) -> None:
    records: dict[str, Path] = {}
    if way == "report":
        directory = tmp_path_factory.mktemp("records")
        records = dict.fromkeys([AGENT, OTHER] if both else [AGENT], directory)
    with connections(server) as (proxy, switch):
        hand = OperatorWork(f"host-{uuid4()}-", Operator(server.client()))
        shared_tree = SharedTree(proxy, switch, hand, by_uuid, records)
        proxy.plan(read_faults(reads), write_faults(shared_tree, writes))
        for drawn in steps:
            shared_tree.step(Choices(drawn))
        shared_tree.end()
        tree = hand.operator.tree(shared_tree.host)
        unmarked = {
            name: replace(picture, traits=picture.traits - OWNER_TRAITS)
            for name, picture in tree.items()
        }
        assert unmarked == shared_tree.expected()
        for name in PARENTS:
            if name and shared_tree.host + name in tree:
                assert len(tree[shared_tree.host + name].traits & OWNER_TRAITS) == 1
