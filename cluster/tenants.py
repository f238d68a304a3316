"""Clients under load: each writes, and then reads its write from whichever server answers."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from http_client import Answer, HttpClient, InDoubt, Records
from ledger import Holding, Ledger, capacity, read_holding

# What a client does over its connection until it is over.
Work: TypeAlias = Callable[[HttpClient, Callable[[], bool]], None]

_HOLDERS_MAX = 24
_TOTAL = 64


@dataclass
class _Host:
    """A provider that one tenant alone writes to, so that it knows the right answer."""

    uuid: str
    total: int = _TOTAL
    consumers: list[str] = field(default_factory=list)


class Tenant:
    """Makes hosts, claims, replaces, deletes and changes inventories, and checks each answer.

    After a write in doubt, the tenant leaves host and consumer alone: the write of a server that
    was killed may still be carried out by the database.
    """

    def __init__(self, ledger: Ledger, shared: Sequence[str], seed: int) -> None:
        self._ledger = ledger
        self._shared = shared
        self._random = random.Random(seed)

    def run(self, client: HttpClient, is_over: Callable[[], bool]) -> None:
        """Work until it is over."""
        self._client = client
        while not is_over():
            try:
                host = self._make_host()
                while not is_over():
                    self._work(host)
            except InDoubt:
                time.sleep(0.01)

    def _make_host(self) -> _Host:
        host = _Host(str(uuid.uuid4()))
        self._expect(
            self._client.send(
                "POST", "/resource_providers", {"name": host.uuid, "uuid": host.uuid}
            ),
            200,
        )
        self._ledger.providers.add(host.uuid)
        self._put_inventory(host, 0)
        return host

    def _work(self, host: _Host) -> None:
        kinds = [self._claim, self._replace, self._delete, self._grow]
        weights = [5, 3, 2 if len(host.consumers) < _HOLDERS_MAX else 9, 1]
        (work,) = self._random.choices(kinds, weights)
        if work is not self._claim and work is not self._grow and not host.consumers:
            work = self._claim
        if work is self._claim and len(host.consumers) >= _HOLDERS_MAX:
            work = self._delete
        work(host)
        self._check_candidates(host)

    def _claim(self, host: _Host) -> None:
        consumer = str(uuid.uuid4())
        wanted = self._wanted(host)
        if self._write(consumer, {}, wanted, None):
            host.consumers.append(consumer)

    def _replace(self, host: _Host) -> None:
        consumer = self._random.choice(host.consumers)
        now = self._client.get(f"/allocations/{consumer}").json
        wanted = self._wanted(host)
        self._write(consumer, self._ledger.held[consumer], wanted, now["consumer_generation"])

    def _delete(self, host: _Host) -> None:
        consumer = host.consumers.pop(self._random.randrange(len(host.consumers)))
        before = self._ledger.held.pop(consumer)
        try:
            answer = self._client.send("DELETE", f"/allocations/{consumer}")
        except InDoubt:
            self._ledger.doubted[consumer] = (before, {})
            raise
        self._expect(answer, 204)
        self._ledger.held[consumer] = {}
        self._read_back(consumer, {})

    def _grow(self, host: _Host) -> None:
        path = f"/resource_providers/{host.uuid}/inventories"
        generation = self._client.get(path).json["resource_provider_generation"]
        host.total = _TOTAL + self._random.randrange(_TOTAL)
        self._put_inventory(host, generation)

    def _put_inventory(self, host: _Host, generation: int) -> None:
        body = {
            "resource_provider_generation": generation,
            "inventories": {"VCPU": {"total": host.total}, "MEMORY_MB": {"total": 1 << 20}},
        }
        path = f"/resource_providers/{host.uuid}/inventories"
        self._expect(self._client.send("PUT", path, body), 200)

    def _wanted(self, host: _Host) -> Holding:
        wanted: Holding = {
            host.uuid: {"VCPU": self._random.randint(1, 2), "MEMORY_MB": self._random.randint(1, 9)}
        }
        if self._random.random() < 0.5:
            wanted[self._random.choice(self._shared)] = {"DISK_GB": self._random.randint(1, 5)}
        return wanted

    def _write(
        self, consumer: str, before: Holding, wanted: Holding, generation: int | None
    ) -> bool:
        """Write what a consumer holds; return whether there was room."""
        body = {
            "allocations": {name: {"resources": amounts} for name, amounts in wanted.items()},
            "project_id": "cluster",
            "user_id": "cluster",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        self._ledger.held.pop(consumer, None)
        try:
            answer = self._client.send("PUT", f"/allocations/{consumer}", body)
        except InDoubt:
            self._ledger.doubted[consumer] = (before, wanted)
            raise
        is_full = answer.status == 409 and b"exceed" in answer.body
        if not is_full:
            self._expect(answer, 204)
        now = before if is_full else wanted
        self._ledger.held[consumer] = now
        self._read_back(consumer, now)
        return not is_full

    def _read_back(self, consumer: str, expected: Holding) -> None:
        writer = self._client.server
        found = read_holding(self._client, consumer)
        if found != expected:
            self._ledger.wrong(f"after its write, {consumer} reads {found}, not {expected}")
        self._ledger.count_read(crossed=self._client.server not in ("", writer))

    def _check_candidates(self, host: _Host) -> None:
        path = f"/allocation_candidates?resources=VCPU:1&in_tree={host.uuid}"
        summaries = self._client.get(path).json["provider_summaries"]
        held = self._ledger.held
        used = sum(held[one].get(host.uuid, {}).get("VCPU", 0) for one in host.consumers)
        expected = {"capacity": host.total, "used": used}
        found = summaries.get(host.uuid, {}).get("resources", {}).get("VCPU")
        if found != expected:
            self._ledger.wrong(f"candidates of {host.uuid} say {found}, not {expected}")
        self._ledger.count_read(crossed=False)

    def _expect(self, answer: Answer, status: int) -> None:
        if answer.status != status:
            self._ledger.wrong(f"status {answer.status} instead of {status}: {answer.body[:300]!r}")


class Beacon:
    """A provider whose inventory only grows. No reader may ever see it shrink."""

    def __init__(self, ledger: Ledger) -> None:
        self.uuid = str(uuid.uuid4())
        self._ledger = ledger
        self._acknowledged = 1

    def make(self, client: HttpClient) -> None:
        """Create the provider."""
        client.send("POST", "/resource_providers", {"name": self.uuid, "uuid": self.uuid})
        self._put(client, 0, 1)

    def write(self, client: HttpClient, is_over: Callable[[], bool]) -> None:
        """Let the inventory grow until it is over."""
        total = self._acknowledged
        while not is_over():
            total += 1
            generation = client.get(self._path).json["resource_provider_generation"]
            try:
                # 409: a write in doubt was carried out after this client read the generation.
                if self._put(client, generation, total) == 200:
                    self._acknowledged = total
            except InDoubt:
                pass
            time.sleep(0.01)

    def read(self, client: HttpClient, is_over: Callable[[], bool]) -> None:
        """Read the inventory by turns from the tables and from the search, until it is over."""
        last = 0
        readers = (self._read_tables, self._read_candidates)
        while not is_over():
            for reader in readers:
                floor = max(last, self._acknowledged)
                last = reader(client)
                if last < floor:
                    self._ledger.wrong(f"{reader.__name__} gave {last} after {floor} was told")
                self._ledger.count_beacon()
            time.sleep(0.005)

    @property
    def _path(self) -> str:
        return f"/resource_providers/{self.uuid}/inventories"

    def _put(self, client: HttpClient, generation: int, total: int) -> int:
        body = {
            "resource_provider_generation": generation,
            "inventories": {"VCPU": {"total": total}},
        }
        return client.send("PUT", self._path, body).status

    def _read_tables(self, client: HttpClient) -> int:
        return capacity(client.get(self._path).json["inventories"]["VCPU"])

    def _read_candidates(self, client: HttpClient) -> int:
        path = f"/allocation_candidates?resources=VCPU:1&in_tree={self.uuid}"
        summary = client.get(path).json["provider_summaries"][self.uuid]
        return int(summary["resources"]["VCPU"]["capacity"])


@dataclass
class Crowd:
    """All clients of a run, each in a thread of its own."""

    port: int
    records: Records
    ledger: Ledger
    tenants: int
    threads: list[threading.Thread] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Make what the clients share, and start them."""
        beacon = Beacon(self.ledger)
        maker = self._client()
        beacon.make(maker)
        shared = [self._make_shared(maker) for _ in range(3)]
        works: list[Work] = [beacon.write, beacon.read, beacon.read, beacon.read]
        for seed in range(self.tenants):
            works.append(Tenant(self.ledger, shared, seed).run)
        for work in works:
            thread = threading.Thread(target=self._guarded, args=(work,))
            self.threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Wait until all clients have ended."""
        self._over.set()
        for thread in self.threads:
            thread.join()

    def _guarded(self, work: Work) -> None:
        client = self._client()
        try:
            work(client, self._over.is_set)
        except Exception as error:
            self.ledger.wrong(f"a client ended: {error!r}")
        finally:
            client.close()

    def _client(self) -> HttpClient:
        return HttpClient(self.port, self.records)

    def _make_shared(self, client: HttpClient) -> str:
        """A provider that all tenants fill: it is full most of the time."""
        name = str(uuid.uuid4())
        client.send("POST", "/resource_providers", {"name": name, "uuid": name})
        body = {"resource_provider_generation": 0, "inventories": {"DISK_GB": {"total": 150}}}
        client.send("PUT", f"/resource_providers/{name}/inventories", body)
        self.ledger.providers.add(name)
        return name
