"""Scenario: writers and readers at once, and whether a reader gets a stale number."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import clouds
from clouds import Cloud
from databases import DatabaseError, open_databases
from meters import claim_body
from queries import PLAIN
from results import Column, Table
from stage import Scenario, Stage
from targets import Client, RequestFailed, Target

HOSTS = 200
WRITERS, READERS = 4, 4
LIMIT = 50
HELD = 20
"""The number of consumers that a writer keeps at a time."""
CLASS = "DISK_GB"

TABLE = Table(
    f"Mixed load on {HOSTS} trees: {WRITERS} writers (a claim or its end), {READERS} readers "
    f"(candidates, limit {LIMIT}); requests a second,\nCPU of the server in ms a request of "
    "either kind; stale: answers older than their request",
    (
        Column("writes/s", ",.0f"),
        Column("reads/s", ",.0f"),
        Column("ms CPU", ".2f"),
        Column("checked", ",d"),
        Column("stale", "d"),
        Column("errors", "d"),
        Column("refused", "d"),
    ),
)


@dataclass
class Ledger:
    """The usage of one host's disk: one entry for each write that a writer began."""

    used: list[int]
    acknowledged: int = 0
    """The last entry that the server has confirmed."""

    def begin(self, change: int) -> None:
        """Note that a writer sends a write."""
        self.used.append(self.used[-1] + change)

    def finish(self) -> None:
        """Note that the server confirmed the write."""
        self.acknowledged = len(self.used) - 1

    def abandon(self) -> None:
        """Note that the server refused the write and the usage is as before."""
        self.used.append(self.used[-2])
        self.finish()


@dataclass
class Tally:
    """The counts of all events, and the errors."""

    counts: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, number: int = 1) -> None:
        """Count events of a kind."""
        with self._lock:
            self.counts[kind] += number

    def complain(self, text: str) -> None:
        """Note an event that must not happen."""
        with self._lock:
            self.complaints.append(text)


class MixedLoad:
    """Writers with hosts of their own, and readers of all hosts."""

    def __init__(self, target: Target, cloud: Cloud, seconds: float) -> None:
        self.tally = Tally()
        self._target = target
        self._hosts = cloud.roots
        self._end = time.monotonic() + seconds
        self._path = PLAIN.path(cloud, LIMIT)
        body = json.loads(target.get(PLAIN.path(cloud)))
        self._ledgers = {
            host: Ledger([body["provider_summaries"][host]["resources"][CLASS]["used"]])
            for host in self._hosts
        }

    def run(self) -> None:
        """Run all writers and readers until the time is over."""
        works = [*[self._write] * WRITERS, *[self._read] * READERS]
        threads = [
            threading.Thread(target=self._guard, args=(work, index % WRITERS))
            for index, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guard(self, work: Callable[[Client, int], None], index: int) -> None:
        try:
            work(self._target.connect(), index)
        except (RequestFailed, KeyError, ValueError) as error:
            self.tally.note("error")
            self.tally.complain(repr(error))

    def _write(self, client: Client, index: int) -> None:
        hosts = self._hosts[index::WRITERS]
        choice = random.Random(index)
        living: deque[tuple[str, str]] = deque()
        while time.monotonic() < self._end:
            if len(living) < HELD:
                host, consumer = choice.choice(hosts), str(uuid.uuid4())
                if self._send(client, host, consumer, 1):
                    living.append((host, consumer))
            else:
                host, consumer = living.popleft()
                self._send(client, host, consumer, -1)

    def _send(self, client: Client, host: str, consumer: str, change: int) -> bool:
        """Claim, or end a claim, and return whether the server confirmed it."""
        ledger = self._ledgers[host]
        ledger.begin(change)
        method, body = ("PUT", claim_body({host: {CLASS: 1}})) if change > 0 else ("DELETE", None)
        status, answer = client.send(method, f"/allocations/{consumer}", body)
        if status == 204:
            ledger.finish()
            self.tally.note("write")
            return True
        ledger.abandon()
        if status in (409, 503):
            self.tally.note("refused")
        else:
            self.tally.note("error")
            self.tally.complain(f"{method} of a claim: {status} {answer[:300]!r}")
        return False

    def _read(self, client: Client, index: int) -> None:
        for number in count():
            if time.monotonic() >= self._end:
                break
            path = self._path
            if number % 2:
                # A question about one host shows that host under every limit.
                host = self._hosts[(number * 31 + index) % len(self._hosts)]
                path = f"{path}&in_tree={host}"
            known = {host: ledger.acknowledged for host, ledger in self._ledgers.items()}
            summaries = json.loads(client.get(path))["provider_summaries"]
            self.tally.note("read")
            self._check(known, summaries)

    def _check(self, known: dict[str, int], summaries: dict[str, Any]) -> None:
        """Each usage must have been true at some moment since the request was sent."""
        for host in known.keys() & summaries.keys():
            used = summaries[host]["resources"][CLASS]["used"]
            self.tally.note("checked")
            possible = self._ledgers[host].used[known[host] :]
            if used not in possible:
                self.tally.note("stale")
                self.tally.complain(f"{used} used of {host}, which had {possible}")


def mixed(kind: str) -> Scenario:
    """Writers and readers on one kind of database."""

    def run(stage: Stage) -> None:
        seconds = 3.0 if stage.quick else 10.0
        if kind == "sqlite":
            with stage.servers("mixed", clouds.nested(HOSTS)) as servers:
                assert servers.reference is not None
                for target in (servers.roost, servers.reference):
                    _load(stage, target, f"{target.name} on sqlite", servers.cloud, seconds)
            return
        with ExitStack() as stack:
            home = stack.enter_context(stage.home())
            try:
                databases = stack.enter_context(open_databases(kind, home, keep=False))
            except DatabaseError as error:
                stage.results.progress(f"mixed-{kind} is left out: {error}")
                return
            url = databases.create().url
            cloud = clouds.make_in_database(clouds.nested(HOSTS), url, stage.roost)
            target = stack.enter_context(stage.run_roost(url))
            _load(stage, target, f"roost on {kind}", cloud, seconds)

    return run


def _load(stage: Stage, target: Target, name: str, cloud: Cloud, seconds: float) -> None:
    stage.results.progress(f"mixed load, {name}")
    load = MixedLoad(target, cloud, seconds)
    started, before = time.monotonic(), target.cpu_seconds()
    load.run()
    passed, used = time.monotonic() - started, target.cpu_seconds() - before
    counts = load.tally.counts
    stage.results.add(
        TABLE,
        name,
        counts["write"] / passed,
        counts["read"] / passed,
        used * 1000 / max(1, counts["write"] + counts["read"] + counts["refused"]),
        counts["checked"],
        counts["stale"],
        counts["error"],
        counts["refused"],
    )
    if target.name == "roost":
        for text in load.tally.complaints[:3]:
            stage.results.failure(f"mixed load, {name}: {text}")
