"""After any faults the server's tree converges to the last declaration of each writer.

One tree has four writers: two owners that declare, a compute service whose driver edits the tree,
and an operator. The requests of the owners and of the compute service go through a proxy. The proxy
answers conflicts, closes connections, loses and delays answers, and has the operator write in
between. Reports fail. Processes crash, and start again with their ownership records only. Then the
faults end, each writer reports once more, and the tree is compared with the last declarations.

The declarations of the owners overlap. The second owner of an item finds it on the server, and does
not own it. If the first owner no longer declares the item, its report removes the item. The next
report of the second owner adds it again. So two rounds of reports end the test, and a third
round changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.errors import PlacementError
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.reporting.difference import Difference
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.client.transport.http import HttpTransport, Timeouts
from roost.client.transport.retrying import RetryPolicy
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


# -- the processes that report


class Process:
    """A process that reports one host; a restart keeps only its ownership records."""

    def __init__(self, shared_tree: SharedTree, owner: str | None) -> None:
        self._shared_tree = shared_tree
        self._owner = owner
        self._store = InMemoryOwnershipStore()
        self._transport = DyingTransport(shared_tree.transport)
        self.start()

    def start(self) -> None:
        self._transport.writes_left = None
        self._reporter = Reporter(self._transport, clock=self._shared_tree.clock)

    def report(self, wanted: Declaration | Compute) -> Difference:
        if isinstance(wanted, Compute):
            return self._reporter.report(wanted, self._shared_tree.host, self._shared_tree.uuid)
        assert self._owner is not None
        reporter = DeclarativeReporter(self._reporter, self._owner, self._store)
        return reporter.declare(wanted, self._shared_tree.host, self._shared_tree.uuid).difference

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
    """A transport through the proxy, or straight to the server with long timeouts."""

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
        self, proxy: FaultyProxy, switch: Switch, hand: OperatorWork, by_uuid: bool
    ) -> None:
        self.host = hand.host
        self.uuid = str(uuid4()) if by_uuid else None
        self.proxy = proxy
        self.transport = switch
        self.hand = hand
        self.now = 0.0
        self.processes = {name: Process(self, name) for name in (AGENT, OTHER)}
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
        """End the faults, and report twice; a third round changes nothing."""
        self.proxy.plan()
        self.proxy.settle()
        self.transport.is_faithful = True
        self.hand.finish()
        self.round(after=REREAD)
        self.round(after=REFRESH)
        last = self.round(after=REFRESH)
        assert [line for change in last for line in change.lines()] == []

    def round(self, after: float) -> list[Difference]:
        self.now += after
        return [self._report(name) for name in self.processes]

    def _report(self, name: str) -> Difference:
        try:
            return self.processes[name].report(self.wanted[name])
        except PlacementError:
            # The process may have to read the tree again after an earlier failure.
            return self.processes[name].report(self.wanted[name])

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
            HttpTransport(proxy.url, "admin", timeout=Timeouts(5, 0.2), retries=at_once),
            HttpTransport(f"http://127.0.0.1:{server.port}", "admin", retries=at_once),
        )
        try:
            yield proxy, switch
        finally:
            switch.close()


@reference_in_the_long_run
@settings(
    max_examples=many(10),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.binary(min_size=24, max_size=24), min_size=5, max_size=10),
    by_uuid=st.booleans(),
    writes=st.binary(min_size=20, max_size=80),
    reads=st.binary(max_size=60),
)
def test_the_tree_converges_to_the_last_declarations(
    server: LiveServer, steps: list[bytes], by_uuid: bool, writes: bytes, reads: bytes
) -> None:
    with connections(server) as (proxy, switch):
        hand = OperatorWork(f"host-{uuid4()}-", Operator(server.client()))
        shared_tree = SharedTree(proxy, switch, hand, by_uuid)
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
