"""Whatever goes wrong on the way, in the end the server has what everybody declared last.

One tree has four writers: two owners, who declare; a compute service, whose driver edits the tree
it is given; and an operator, who edits by hand. Their requests, the operator's excepted, go through
a proxy that answers conflicts, hangs up, loses answers, delays, and lets the operator in between.
Reports fail, processes die and start again with nothing but their records. Then the faults end,
everybody reports what it declared last, and the tree is compared with what they all said.

What the owners declare overlaps. The second one to declare an item finds it there and does not
own it; when the first one withdraws it, it goes, and comes back with the next report of the second
one. Hence two rounds of reports at the end: nothing is left to do in a third one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.errors import PlacementError
from roost.client.owning.owner import Owner
from roost.client.owning.records import MemoryRecords
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.difference import Difference
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Request, Response, Transport
from roost.client.transport.http import HttpTransport, Timeouts
from roost.client.transport.retrying import RetryPolicy
from support.by_hand import Operator, Picture
from support.choices import Choices
from support.faulty_proxy import Fault, FaultyProxy, Step
from support.forest import stored
from support.live_server import LiveServer

AGENT, OTHER = "agent", "other"
MARKS = frozenset({"CUSTOM_OWNER_AGENT", "CUSTOM_OWNER_OTHER"})

# Below the host; what a provider is called on the server begins with the name of the host.
PARENTS = {"": None, "numa": "", "device": "numa", "bridge": ""}

BY_HAND = "CUSTOM_BY_HAND"
LICENCE = "CUSTOM_LICENCE"
"""The agent always declares its total on the host; what is reserved of it is the operator's."""

SHARED = "CUSTOM_SHARED"
AGGREGATES = {
    AGENT: "aaaaaaaa-1111-4111-8111-111111111111",
    OTHER: "bbbbbbbb-1111-4111-8111-111111111111",
    SHARED: "cccccccc-1111-4111-8111-111111111111",
}
BY_HAND_TRAITS = [f"{BY_HAND}_{number}" for number in range(4)]
BY_HAND_AGGREGATES = [f"dddddddd-1111-4111-8111-00000000000{number}" for number in range(4)]

COMPUTE_CLASSES = frozenset({"VCPU", "MEMORY_MB"})
COMPUTE_TRAITS = frozenset({"HW_CPU_X86_AVX", "COMPUTE_NODE"})

# After which a reporter compares generations, and after which it reads everything again.
A_WHILE, LONG = 301.0, 3601.0


class Death(BaseException):
    """The end of a process: nothing that anybody catches."""


# -- what is declared


def a_declaration(host: str, owner: str, choices: Choices) -> Declaration:
    chosen = [""]
    chosen += [name for name, parent in PARENTS.items() if parent in chosen and choices.likely()]
    return Declaration(
        tuple(
            DeclaredProvider(
                host + name,
                None if PARENTS[name] is None else f"{host}{PARENTS[name]}",
                None,
                some_inventories(owner, name, choices),
                frozenset(choices.some([f"CUSTOM_{owner.upper()}", SHARED])),
                frozenset(choices.some([AGGREGATES[owner], AGGREGATES[SHARED]])),
            )
            for name in chosen
        )
    )


def some_inventories(owner: str, name: str, choices: Choices) -> dict[str, InventoryFields]:
    found: dict[str, InventoryFields] = {}
    if owner == AGENT and name == "":
        found[LICENCE] = {"total": choices.one((8, 16))}
    if choices.yes():
        found[f"CUSTOM_{owner.upper()}"] = {"total": choices.one((8, 16)), **reserved(choices)}
    if choices.yes():
        # They agree on the total; only one of them ever says how much is reserved.
        found[SHARED] = {"total": 4, **(reserved(choices) if owner == OTHER else {})}
    return found


def reserved(choices: Choices) -> dict[str, int]:
    return {"reserved": 2} if choices.yes() else {}


@dataclass(frozen=True)
class Compute:
    """What the compute service has on the host: it edits this, and nothing else."""

    host: str
    inventories: dict[str, dict[str, Any]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    has_child: bool = False

    @property
    def child(self) -> str:
        return f"{self.host}compute"

    def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
        foreign = {
            name: fields
            for name, fields in provider_tree.data(nodename).inventory.items()
            if name not in COMPUTE_CLASSES
        }
        provider_tree.update_inventory(nodename, foreign | self.inventories)
        provider_tree.remove_traits(nodename, *(COMPUTE_TRAITS - self.traits))
        provider_tree.add_traits(nodename, *self.traits)
        if provider_tree.exists(self.child) and not self.has_child:
            provider_tree.remove(self.child)
        if self.has_child:
            if not provider_tree.exists(self.child):
                provider_tree.new_child(self.child, nodename)
            provider_tree.update_inventory(self.child, {"VGPU": {"total": 4}})


def a_compute(host: str, choices: Choices) -> Compute:
    return Compute(
        host,
        {name: {"total": choices.one((8, 16))} for name in choices.some(sorted(COMPUTE_CLASSES))},
        frozenset(choices.some(sorted(COMPUTE_TRAITS))),
        choices.yes(),
    )


# -- those who report


class Mortal:
    """A transport whose process dies instead of the write after so many."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.writes_left: int | None = None

    def send(self, request: Request) -> Response:
        if request.method != "GET" and self.writes_left is not None:
            if self.writes_left == 0:
                raise Death
            self.writes_left -= 1
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()


class Process:
    """A process that reports one host: it forgets all but its records when it starts again."""

    def __init__(self, world: World, owner: str | None) -> None:
        self._world = world
        self._owner = owner
        self._records = MemoryRecords()
        self._transport = Mortal(world.transport)
        self.start()

    def start(self) -> None:
        self._transport.writes_left = None
        self._reporter = Reporter(self._transport, clock=self._world.clock)

    def report(self, wanted: Declaration | Compute) -> Difference:
        if isinstance(wanted, Compute):
            return self._reporter.report(wanted, self._world.host, self._world.uuid)
        assert self._owner is not None
        owner = Owner(self._reporter, self._owner, self._records)
        return owner.declare(wanted, self._world.host, self._world.uuid).difference

    def report_badly(self, wanted: Declaration | Compute, writes_left: int | None) -> None:
        """Report while things go wrong; die before some write, if that is not None."""
        self._transport.writes_left = writes_left
        try:
            with suppress(PlacementError):
                self.report(wanted)
        except Death:
            self.start()
        self._transport.writes_left = None


class Switch:
    """A transport through the proxy, or straight to the server and with all the time it needs."""

    def __init__(self, faulty: Transport, faithful: Transport) -> None:
        self._faulty = faulty
        self._faithful = faithful
        self.is_faithful = False

    def send(self, request: Request) -> Response:
        return (self._faithful if self.is_faithful else self._faulty).send(request)

    def close(self) -> None:
        self._faulty.close()
        self._faithful.close()


# -- the operator


@dataclass
class Hand:
    """What the operator has done, and must find again."""

    host: str
    operator: Operator
    inventories: dict[str, int] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    reserved: int = 0
    consumers: list[str] = field(default_factory=list)
    # A request that nobody waits for any more may still let the operator in.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, choices: Choices, *, between_reports: bool = False) -> None:
        """Do something to a provider that is there."""
        deeds = [self._add_inventory, self._add_trait, self._reserve, self._add_aggregate]
        deeds += [self._add_child, self._claim]
        if between_reports:
            # In the instant between the look and the write of somebody else it would be lost.
            deeds.append(self._add_aggregate_as_of_old)
        with self.lock:
            there = self.operator.tree(self.host)
            if there:
                choices.one(deeds)(there, choices)

    def finish(self) -> None:
        """Use nothing any more."""
        for consumer in self.consumers:
            self.operator.release(consumer)

    def _some_provider(self, there: dict[str, Picture], choices: Choices) -> str:
        return choices.one([name for name in PARENTS if self.host + name in there])

    def _add_inventory(self, there: dict[str, Picture], choices: Choices) -> None:
        name, total = self._some_provider(there, choices), choices.one((8, 16))
        self.operator.set_inventory(self.host + name, BY_HAND, total=total)
        self.inventories[name] = total

    def _add_child(self, there: dict[str, Picture], choices: Choices) -> None:
        parent = self._some_provider(there, choices)
        name = f"by-hand-below-{parent}"
        if name not in self.children:
            self.operator.create(self.host + name, self.host + parent)
            self.children[name] = parent

    # Traits and aggregates go with their provider, so these only go to the host, which stays.

    def _add_trait(self, there: dict[str, Picture], choices: Choices) -> None:
        trait = choices.one(BY_HAND_TRAITS)
        self.operator.add_traits(self.host, trait)
        self.traits.add(trait)

    def _add_aggregate(self, there: dict[str, Picture], choices: Choices) -> None:
        aggregate = choices.one(BY_HAND_AGGREGATES)
        self.operator.add_aggregates(self.host, aggregate)
        self.aggregates.add(aggregate)

    def _add_aggregate_as_of_old(self, there: dict[str, Picture], choices: Choices) -> None:
        aggregate = choices.one(BY_HAND_AGGREGATES)
        self.operator.add_aggregates_as_of_old(self.host, aggregate)
        self.aggregates.add(aggregate)

    def _reserve(self, there: dict[str, Picture], choices: Choices) -> None:
        if LICENCE in there[self.host].inventories:
            self.reserved = choices.one((1, 2))
            self.operator.set_inventory(self.host, LICENCE, reserved=self.reserved)

    def _claim(self, there: dict[str, Picture], choices: Choices) -> None:
        """Use something, so that it cannot be removed until the operator has finished."""
        name = self.host + self._some_provider(there, choices)
        if there[name].inventories:
            resource_class = choices.one(sorted(there[name].inventories))
            self.consumers.append(self.operator.claim(name, resource_class))


# -- the whole


class World:
    """A tree of its own on a shared server, and all who write to it."""

    def __init__(self, proxy: FaultyProxy, switch: Switch, hand: Hand, by_uuid: bool) -> None:
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
        """One of them does something."""
        who = choices.one([AGENT, OTHER, "compute", "operator"])
        if choices.one([False, False, False, True]):
            self.now += choices.one((A_WHILE, LONG))
        if who == "operator":
            self.hand.act(choices, between_reports=True)
            return
        process = self.processes[who]
        if choices.one([False] * 7 + [True]):
            process.start()
        writes_left = choices.one([None] * 6 + [choices.one(range(8))])
        self.wanted[who] = (
            a_compute(self.host, choices)
            if who == "compute"
            else a_declaration(self.host, who, choices)
        )
        process.report_badly(self.wanted[who], writes_left)
        self.proxy.settle()

    def end(self) -> None:
        """No more faults: two rounds, after which nothing is left to do."""
        self.proxy.plan()
        self.proxy.settle()
        self.transport.is_faithful = True
        self.hand.finish()
        self.round(after=LONG)
        self.round(after=A_WHILE)
        last = self.round(after=A_WHILE)
        assert [line for change in last for line in change.lines()] == []

    def round(self, after: float) -> list[Difference]:
        self.now += after
        return [self._report(name) for name in self.processes]

    def _report(self, name: str) -> Difference:
        try:
            return self.processes[name].report(self.wanted[name])
        except PlacementError:
            # One that failed before may have to forget first what it then believed.
            return self.processes[name].report(self.wanted[name])

    # -- what must come of it

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
                self.host, [DeclaredProvider("", inventories={"VGPU": {"total": 4}})]
            )
        return found

    def _declared(self, name: str) -> list[DeclaredProvider]:
        parts = []
        for wanted in self.wanted.values():
            if isinstance(wanted, Declaration):
                parts += [part for part in wanted.providers if part.name == self.host + name]
            elif name == "":
                parts.append(
                    DeclaredProvider("", inventories=wanted.inventories, traits=wanted.traits)
                )
        return parts

    def _by_hand(self, name: str) -> list[DeclaredProvider]:
        inventories: dict[str, InventoryFields] = {}
        if name in self.hand.inventories:
            inventories[BY_HAND] = {"total": self.hand.inventories[name]}
        if name != "":
            return [DeclaredProvider("", inventories=inventories)] if inventories else []
        inventories[LICENCE] = {"reserved": self.hand.reserved}
        return [
            DeclaredProvider(
                "",
                inventories=inventories,
                traits=frozenset(self.hand.traits),
                aggregates=frozenset(self.hand.aggregates),
            )
        ]

    def _is_needed(self, name: str) -> bool:
        """Nobody wants it any more, but it has something below it that somebody wants."""
        below = [child for child, parent in PARENTS.items() if parent == name]
        return name in self.hand.children.values() or any(
            self._declared(child) or self._by_hand(child) or self._is_needed(child)
            for child in below
        )


def united(parent: str | None, parts: list[DeclaredProvider]) -> Picture:
    """One provider with all that somebody says of it."""
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


# -- what goes wrong


def write_faults(world: World, drawn: bytes) -> Iterator[Step]:
    # In this order: what is simplest to understand comes first when an example shrinks.
    faults: list[Step] = [None] * 6
    faults += [Fault.CONFLICT, Fault.LOST_ANSWER, Fault.HANG_UP, Fault.UNAVAILABLE]
    faults += [Fault.GATEWAY_TIMEOUT, Fault.INTERNAL_ERROR]
    for kind, detail in zip(drawn[::2], drawn[1::2], strict=False):
        if kind % 16 < len(faults):
            yield faults[kind % 16]
        elif kind % 16 < 15:
            yield interlude(world.hand, detail)
        else:
            yield Fault.LATE if detail % 2 else Fault.SLOW


def interlude(hand: Hand, detail: int) -> Callable[[], None]:
    return lambda: hand.act(Choices(bytes([detail])))


def read_faults(drawn: bytes) -> Iterator[Step]:
    faults = [Fault.UNAVAILABLE, Fault.LOST_ANSWER, Fault.HANG_UP]
    for byte in drawn:
        yield faults[byte % 3] if byte >= 200 else None


# -- the test


@contextmanager
def no_waiting(server: LiveServer) -> Iterator[tuple[FaultyProxy, Switch]]:
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


@pytest.mark.parametrize("server", ["roost"], indirect=True)
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.binary(min_size=16, max_size=16), min_size=4, max_size=10),
    by_uuid=st.booleans(),
    writes=st.binary(min_size=60, max_size=120),
    reads=st.binary(max_size=60),
)
def test_in_the_end_everybody_has_what_it_declared_last(
    server: LiveServer, steps: list[bytes], by_uuid: bool, writes: bytes, reads: bytes
) -> None:
    with no_waiting(server) as (proxy, switch):
        hand = Hand(f"host-{uuid4()}-", Operator(server.client()))
        world = World(proxy, switch, hand, by_uuid)
        proxy.plan(read_faults(reads), write_faults(world, writes))
        for drawn in steps:
            world.step(Choices(drawn))
        world.end()
        tree = hand.operator.tree(world.host)
        unmarked = {
            name: replace(picture, traits=picture.traits - MARKS) for name, picture in tree.items()
        }
        assert unmarked == world.expected()
        for name in PARENTS:
            if name and world.host + name in tree:
                assert len(tree[world.host + name].traits & MARKS) == 1
