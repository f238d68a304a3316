"""The memory of a worker under a mixed load: it does not grow with the number of requests.

`ROOST_TEST_LOAD_SECONDS` is the time of the load on each database, 30 seconds by default.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roost.model.identifiers import new_uuid
from support.api_client import ApiClient
from support.servers.live_server import LiveServer, resident_megabytes

SECONDS = float(os.environ.get("ROOST_TEST_LOAD_SECONDS", "30"))
# Measured: 2 MB in half a minute, 1.5 MB in five minutes. A worker that keeps every forest grows
# by 10 to 24 MB in half a minute. Leaks of a few bytes a request need the five minutes.
GROWTH_MEGABYTES_MAX = 8
SAMPLE_SECONDS = 0.25
WRITERS, READERS = 3, 3
TREES = 60
HELD = 30
CPU_TRAIT = "HW_CPU_X86_AVX2"
INSTANCE = "resources=VCPU:1,MEMORY_MB:{memory},DISK_GB:1"


@dataclass(frozen=True)
class Tree:
    """A host: disk, and two NUMA nodes with CPU and memory."""

    root: str
    nodes: tuple[str, str]


def create(api: ApiClient, parent: str | None, totals: dict[str, int]) -> str:
    """Create a provider with these inventories."""
    uuid = new_uuid()
    body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
    assert api.post("/resource_providers", body).status == 200
    write_inventories(api, uuid, 0, totals)
    return uuid


def write_inventories(
    api: ApiClient, provider: str, generation: int, totals: dict[str, int]
) -> None:
    records = {name: {"total": total} for name, total in totals.items()}
    body = {"resource_provider_generation": generation, "inventories": records}
    answer = api.put(f"/resource_providers/{provider}/inventories", body)
    assert answer.status == 200, answer.body


def make_tree(api: ApiClient, aggregate: str) -> Tree:
    root = create(api, None, {"DISK_GB": 100_000})
    body: dict[str, Any] = {"aggregates": [aggregate], "resource_provider_generation": 1}
    assert api.put(f"/resource_providers/{root}/aggregates", body).status == 200
    one, two = (create(api, root, {"VCPU": 1000, "MEMORY_MB": 10_000_000}) for _ in range(2))
    body = {"traits": [CPU_TRAIT], "resource_provider_generation": 1}
    assert api.put(f"/resource_providers/{one}/traits", body).status == 200
    return Tree(root, (one, two))


class Load:
    """Writers with trees of their own, readers of all trees, and a count of what they did."""

    def __init__(self, server: LiveServer, seconds: float) -> None:
        self._server = server
        self._aggregates = [new_uuid() for _ in range(5)]
        api = server.client()
        self._trees = [make_tree(api, self._aggregates[number % 5]) for number in range(TREES)]
        self._end = time.monotonic() + seconds
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        """Write and read until the time is over."""
        with ThreadPoolExecutor(WRITERS + READERS) as pool:
            writers = [pool.submit(self._write, number) for number in range(WRITERS)]
            readers = [pool.submit(self._read, number) for number in range(READERS)]
            for future in [*writers, *readers]:
                future.result()

    def _write(self, number: int) -> None:
        writer = Writer(self._server.client(), self._trees[number::WRITERS], number)
        acts = (writer.claim, writer.claim, writer.replace, writer.release, writer.resize)
        while time.monotonic() < self._end:
            act = writer.choice.choice((*acts, writer.come_and_go))
            act()
            self.done[act.__name__] += 1

    def _read(self, number: int) -> None:
        api, choice = self._server.client(), random.Random(100 + number)
        for path in self._paths(choice):
            if time.monotonic() >= self._end:
                break
            answer = api.get(path)
            assert answer.status == 200, (path, answer.body)
            self.done[path.split("?")[0].split("/")[1]] += 1

    def _paths(self, choice: random.Random) -> Iterator[str]:
        """Questions for ever: some come again and again, some never again."""
        while True:
            tree = choice.choice(self._trees)
            usual = INSTANCE.format(memory=256)
            candidates = "/allocation_candidates?" + usual
            yield from (f"{candidates}&limit=10", f"{candidates}&limit=1000", candidates)
            yield f"{candidates}&required={CPU_TRAIT}&limit=100"
            yield f"{candidates}&member_of={choice.choice(self._aggregates)}"
            yield f"{candidates}&in_tree={tree.root}"
            yield (
                "/allocation_candidates?resources=DISK_GB:1&resources_A=VCPU:1&resources_B=VCPU:1"
                "&group_policy=isolate&same_subtree=_A,_B&limit=50"
            )
            memory = choice.randrange(1, 1_000_000)
            yield f"/allocation_candidates?{INSTANCE.format(memory=memory)}&limit=20"
            yield from ("/resource_providers", f"/resource_providers?{usual}")
            yield f"/resource_providers?in_tree={tree.root}"
            node = choice.choice(tree.nodes)
            for part in ("", "/inventories", "/usages", "/allocations", "/traits", "/aggregates"):
                yield f"/resource_providers/{node}{part}"
            yield f"/allocations/{new_uuid()}"
            yield f"/usages?project_id={new_uuid()}"


class Writer:
    """Changes some trees that no other writer changes, so that no write is refused."""

    def __init__(self, api: ApiClient, trees: list[Tree], seed: int) -> None:
        self.choice = random.Random(seed)
        self._api, self._trees = api, trees
        # Consumers with their generations, the oldest first.
        self._held: deque[tuple[str, int]] = deque()

    def claim(self) -> None:
        """Claim for a new consumer. Many projects and users are new as well."""
        consumer = new_uuid()
        self._put(consumer, None, new_uuid() if self.choice.random() < 0.5 else "project")
        self._held.append((consumer, 1))
        if len(self._held) > HELD:
            self.release()

    def replace(self) -> None:
        """Claim something else for a consumer that holds something."""
        if self._held:
            consumer, generation = self._held.popleft()
            self._put(consumer, generation, "project")
            self._held.append((consumer, generation + 1))

    def release(self) -> None:
        """Delete the allocations of the oldest consumer."""
        if self._held:
            consumer, _ = self._held.popleft()
            assert self._api.delete(f"/allocations/{consumer}").status == 204

    def resize(self) -> None:
        """Change the inventories of a NUMA node."""
        node = self.choice.choice(self._nodes())
        now = self._api.get(f"/resource_providers/{node}/inventories").json
        totals = {"VCPU": self.choice.randrange(900, 1100), "MEMORY_MB": 10_000_000}
        write_inventories(self._api, node, now["resource_provider_generation"], totals)

    def come_and_go(self) -> None:
        """Create a provider and delete it."""
        uuid = create(self._api, None, {"VCPU": 1})
        assert self._api.delete(f"/resource_providers/{uuid}").status == 204

    def _nodes(self) -> list[str]:
        return [node for tree in self._trees for node in tree.nodes]

    def _put(self, consumer: str, generation: int | None, project: str) -> None:
        tree = self.choice.choice(self._trees)
        resources = {"VCPU": self.choice.randrange(1, 4), "MEMORY_MB": 256}
        allocations = {
            tree.root: {"resources": {"DISK_GB": 1}},
            self.choice.choice(tree.nodes): {"resources": resources},
        }
        body = {
            "allocations": allocations,
            "project_id": project,
            "user_id": project,
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        answer = self._api.put(f"/allocations/{consumer}", body)
        assert answer.status == 204, answer.body


def sampled(server: LiveServer, is_running: Callable[[], bool]) -> list[float]:
    """The memory of the worker, at regular times while the load runs."""
    samples = []
    while is_running():
        samples.append(resident_megabytes(server))
        time.sleep(SAMPLE_SECONDS)
    return samples


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"], indirect=True)
def test_memory_stays_flat_under_writers_and_readers(database_url: str, tmp_path: Path) -> None:
    with LiveServer(database_url, tmp_path, workers=1) as server:
        load = Load(server, SECONDS)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(load.run)
            samples = sampled(server, lambda: not running.done())
            running.result()
        assert "Traceback" not in server.log
    # The first third fills pools and caches.
    warm = samples[len(samples) // 3 :]
    part = max(1, len(warm) // 4)
    before, after = (statistics.median(some) for some in (warm[:part], warm[-part:]))
    curve = ", ".join(f"{sample:.0f}" for sample in samples[:: max(1, len(samples) // 10)])
    print(f"{before:.1f} MB, then {after:.1f} MB ({curve}), after {dict(load.done)}")
    assert after - before < GROWTH_MEGABYTES_MAX
    assert min(load.done.values()) > SECONDS, load.done
