"""Many clients claim from the same few providers of a live server with two workers."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache

import pytest

from databases import Databases
from roost.model.identifiers import new_uuid
from support.api_client import ApiClient
from support.servers.live_server import LiveServer

CLIENTS = 32
PROVIDERS = 4
CAPACITY = 40


@pytest.fixture(scope="module")
def _server_on(
    _makers: dict[str, Databases], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], LiveServer]]:
    """Starts one server for each kind of database; every test uses providers of its own."""
    with ExitStack() as stack:

        @cache
        def start(kind: str) -> LiveServer:
            url = _makers[kind].create().url
            return stack.enter_context(LiveServer(url, tmp_path_factory.mktemp(kind)))

        yield start


@pytest.fixture
def server(kind: str, _server_on: Callable[[str], LiveServer]) -> LiveServer:
    return _server_on(kind)


class Ledger:
    """The claims of all clients, under way or granted, and the refusals that are wrong."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.pending: Counter[str] = Counter()
        self.granted: dict[str, tuple[str, ...]] = {}
        self.wrong: list[str] = []

    def begin(self, providers: Sequence[str]) -> None:
        with self._lock:
            self.pending.update(providers)

    def grant(self, consumer: str, providers: Sequence[str]) -> None:
        with self._lock:
            self.granted[consumer] = tuple(providers)

    def refuse(self, providers: Sequence[str], detail: str) -> None:
        """A refusal is right only if one of its providers may have been full at that time."""
        with self._lock:
            if "would exceed the capacity" not in detail:
                self.wrong.append(detail)
            others = self.pending - Counter(providers)
            if not any(others[provider] >= CAPACITY for provider in providers):
                self.wrong.append(f"refused with room left: {others} for {providers}")
            self.pending.subtract(providers)


def claim(api: ApiClient, ledger: Ledger, providers: Sequence[str]) -> bool:
    consumer = new_uuid()
    ledger.begin(providers)
    answer = api.put(
        f"/allocations/{consumer}",
        {
            "allocations": {uuid: {"resources": {"VCPU": 1}} for uuid in providers},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    )
    if answer.status == 204:
        ledger.grant(consumer, providers)
        return True
    assert answer.status == 409, answer.body
    ledger.refuse(providers, answer.detail)
    return False


def fill(server: LiveServer, ledger: Ledger, choices: Sequence[Sequence[str]], seed: int) -> None:
    """Claim from random choices of providers until the server has refused each choice."""
    api = server.client()
    order = random.Random(seed)
    open_choices = [list(choice) for choice in choices]
    while open_choices:
        choice = order.choice(open_choices)
        order.shuffle(choice)
        if not claim(api, ledger, choice):
            open_choices.remove(choice)


def in_parallel(server: LiveServer, ledger: Ledger, choices: Sequence[Sequence[str]]) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        done = [pool.submit(fill, server, ledger, choices, seed) for seed in range(CLIENTS)]
        for future in done:
            future.result()


def test_claims_take_exactly_the_capacity(server: LiveServer) -> None:
    api = server.client()
    providers = [new_uuid() for _ in range(PROVIDERS)]
    for uuid in providers:
        api.post("/resource_providers", {"name": uuid, "uuid": uuid})
        api.put(
            f"/resource_providers/{uuid}/inventories",
            {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": CAPACITY}}},
        )
    ledger = Ledger()
    pairs = [[one, other] for one in providers for other in providers if one < other]
    in_parallel(server, ledger, pairs)
    in_parallel(server, ledger, [[provider] for provider in providers])

    assert ledger.wrong == []
    for uuid in providers:
        assert api.get(f"/resource_providers/{uuid}/usages").json["usages"] == {"VCPU": CAPACITY}
        held = set(api.get(f"/resource_providers/{uuid}/allocations").json["allocations"])
        assert held == {consumer for consumer, chosen in ledger.granted.items() if uuid in chosen}
        # The inventory and each claim move the generation by one, so no claim counts twice.
        generation = api.get(f"/resource_providers/{uuid}").json["generation"]
        assert generation == 1 + CAPACITY
    assert "Traceback" not in server.log


def test_one_of_many_concurrent_writers_of_a_consumer_wins(server: LiveServer) -> None:
    """In each round all clients send the same consumer generation, and one client wins."""
    api = server.client()
    uuid, consumer = new_uuid(), new_uuid()
    api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    api.put(
        f"/resource_providers/{uuid}/inventories",
        {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1000}}},
    )

    def write(generation: int | None) -> int:
        answer = server.client().put(
            f"/allocations/{consumer}",
            {
                "allocations": {uuid: {"resources": {"VCPU": 1}}},
                "project_id": new_uuid(),
                "user_id": "user",
                "consumer_generation": generation,
                "consumer_type": "INSTANCE",
            },
        )
        if answer.status == 409:
            assert "consumer generation conflict" in answer.detail
        return answer.status

    with ThreadPoolExecutor(8) as pool:
        for generation in (None, 1, 2, 3):
            statuses = Counter(pool.map(write, [generation] * 8))
            assert statuses == {204: 1, 409: 7}
    assert api.get(f"/allocations/{consumer}").json["consumer_generation"] == 4
