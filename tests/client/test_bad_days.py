"""A host on bad days: files of its machine break, vanish and come back, and its disk is full.

The agent reports a captured machine three times a minute, so that no fault lasts until the agent
withdraws what it misses. Files of `/sys` break or vanish, and `/sys` is
unmounted. The host gets parts and loses them. The disk of the records is full. The agent starts
again, also while the disk is full, and a second agent tries to write as the same owner. An operator
puts traits on the providers. Whatever happens, no provider gets another uuid, and no trait of the
operator is lost. The agent puts nothing on the host that its records on the disk lack. When all is
well again, the tree is the machine, and the records have all of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roost.client.drivers.linux import LinuxDriver
from roost.client.errors import PlacementError, RecordsInUse, RecordsUnavailable
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.store import FileOwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import HttpTransport
from roost.model.trees.declaration import Declaration, DeclaredProvider
from support.client.captured_machines import captured
from support.client.machine_files import MachineFiles
from support.client.operator_edits import Operator
from support.client.random_choices import Choices
from support.properties import many
from support.servers.live_server import LiveServer
from support.transports.tampering import reference_in_the_long_run

MARK = "CUSTOM_ROOST_OWNER_AGENT"
BY_HAND = [f"CUSTOM_BY_HAND_{number}" for number in range(4)]
PARTS = [f"CUSTOM_PART_{number}" for number in range(4)]
# All steps together take less than the five minutes after which the agent withdraws a provider.
STEPS_MAX = 12
PAUSE_SECONDS = 20.0


class FillableStore(FileOwnershipStore):
    """A store whose disk may be full."""

    is_full = False

    def save(self, root_uuid: str, record: OwnershipRecord) -> None:
        if FillableStore.is_full:
            raise RecordsUnavailable(os.strerror(errno.ENOSPC))
        super().save(root_uuid, record)


class HostWithParts(LinuxDriver):
    """A machine to which parts are added: each is a trait and an inventory of the host."""

    parts: frozenset[str] = frozenset()

    def declare(self, nodename: str) -> Declaration:
        declared = super().declare(nodename)
        host, *others = declared.providers
        assert host.parent is None
        host = replace(
            host,
            traits=host.traits | self.parts,
            inventories={**host.inventories, **{part: {"total": 1} for part in self.parts}},
        )
        return replace(declared, providers=(host, *others))


class BadDays:
    """A host, its agent, and what happens to them."""

    def __init__(self, server: LiveServer, files: MachineFiles, records: Path) -> None:
        self.host = f"host-{uuid4()}"
        self.operator = Operator(server.client())
        self.transport = HttpTransport(server.url, "admin")
        self.files = files
        self.driver = HostWithParts(root=files.root)
        self.records = records
        self.now = 1_000_000.0
        self.uuids: dict[str, str] = {}
        self.traits: dict[str, set[str]] = {}
        self.history: list[str] = []
        FillableStore.is_full = False
        self.start()

    def start(self) -> None:
        """Begin as a process that knows nothing but the records."""
        self.store = FillableStore("agent", self.records)
        self.reporter = DeclarativeReporter(
            Reporter(self.transport), "agent", self.store, clock=lambda: self.now
        )

    def report(self) -> Report:
        self.now += PAUSE_SECONDS
        with self.store.held():
            return self.reporter.report(self.driver, self.host)

    # -- what may happen

    def step(self, choices: Choices) -> None:
        events: list[Callable[[Choices], None]] = [getattr(self, name) for name in EVENTS]
        event = choices.one(events)
        self.history.append(event.__name__)
        event(choices)
        # A report may fail. It must not harm.
        with suppress(PlacementError):
            self.report()
        self.look()

    def _disturb(self, choices: Choices) -> None:
        self.history.append(self.files.disturb(choices))

    def _recover(self, choices: Choices) -> None:
        self.files.restore()

    def _rebuild(self, choices: Choices) -> None:
        """Add a part, or take it away."""
        self.driver.parts ^= {choices.one(PARTS)}

    def _fill(self, choices: Choices) -> None:
        FillableStore.is_full = not FillableStore.is_full

    def _restart(self, choices: Choices) -> None:
        """Start again, also while the disk is full: what could not be saved is lost."""
        self.start()

    def _edit(self, choices: Choices) -> None:
        name, trait = choices.one(sorted(self.uuids)), choices.one(BY_HAND)
        self.operator.add_traits(name, trait)
        self.traits.setdefault(name, set()).add(trait)

    def _rival(self, choices: Choices) -> None:
        with self.store.held(), pytest.raises(RecordsInUse):
            FillableStore("agent", self.records).held().__enter__()

    # -- what must hold

    def look(self) -> None:
        """Compare the tree with what was there before."""
        tree = self.operator.tree(self.host)
        for name, uuid in self.uuids.items():
            assert self.operator.uuid(name) == uuid, (name, self.history)
            assert self.traits.get(name, set()) <= tree[name].traits, (name, self.history)
        # A process that starts now knows what is on the disk.
        recorded = FileOwnershipStore("agent", self.records).load(self.uuids[self.host])
        assert recorded is not None
        owned = recorded.provider(self.uuids[self.host], self.host)
        parts = set(PARTS) & tree[self.host].traits
        assert parts <= owned.traits, self.history
        parts = set(PARTS) & tree[self.host].inventories.keys()
        assert parts <= owned.inventories.keys(), self.history

    def begin(self) -> None:
        self.report()
        self.uuids = {
            name: str(self.operator.uuid(name)) for name in self.operator.names(self.host)
        }
        assert len(self.uuids) > 5

    def end(self) -> None:
        """End all faults. The next report makes the tree equal to the machine."""
        self.files.restore()
        FillableStore.is_full = False
        report = self.report()
        assert not report.kept, (report.kept, self.history)
        assert not self.report().difference
        self.look()
        declared = {each.name: each for each in self.driver.declare(self.host).providers}
        tree = self.operator.tree(self.host)
        assert tree.keys() == declared.keys()
        for name, picture in tree.items():
            assert picture.parent == declared[name].parent
            assert set(picture.inventories) == set(declared[name].inventories)
            by_hand = self.traits.get(name, set())
            assert picture.traits - {MARK} - by_hand == declared[name].traits, name
        self._withdraw_all()

    def _withdraw_all(self) -> None:
        """The records have all that the agent put there, so it can take all of it away."""
        self.start()
        self.reporter.declare(Declaration((DeclaredProvider(self.host),)), self.host)
        ((name, picture),) = self.operator.tree(self.host).items()
        assert (name, picture.inventories) == (self.host, {}), self.history
        assert picture.traits - {MARK} == self.traits.get(self.host, set()), self.history


EVENTS = (
    "_disturb",
    "_disturb",
    "_recover",
    "_rebuild",
    "_fill",
    "_restart",
    "_edit",
    "_rival",
)


def drawn_as(*events: str) -> list[bytes]:
    """The random strings that choose these events."""
    return [EVENTS.index(event).to_bytes(8) for event in events]


@reference_in_the_long_run
@example(steps=drawn_as("_fill", "_rebuild", "_restart", "_rebuild", "_restart"))
@settings(
    max_examples=many(3),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(st.binary(min_size=8, max_size=8), min_size=4, max_size=STEPS_MAX))
def test_no_bad_day_changes_a_uuid_or_loses_a_trait(
    server: LiveServer,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[bytes],
) -> None:
    directory = tmp_path_factory.mktemp("machine")
    days = BadDays(
        server, MachineFiles(captured("virtual-machine"), directory / "root"), directory / "records"
    )
    try:
        days.begin()
        for drawn in steps:
            days.step(Choices(drawn))
        days.end()
    finally:
        days.transport.close()
