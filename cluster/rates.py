"""Rates of claims and of candidates with one server and with two, behind the same proxy."""

from __future__ import annotations

import statistics
import threading
import time
import uuid
from collections.abc import Callable

from http_client import HttpClient, Records
from support.servers.haproxy import Haproxy

_CLIENTS = 16
_HOSTS = 200
_ROUNDS = 3


def measure_rates(proxy: Haproxy, second: str, seconds: float) -> dict[str, tuple[float, float]]:
    """Requests a second of each kind: (one server, two servers), medians of turns in turn."""
    hosts = _make_hosts(HttpClient(proxy.port, Records()))
    works: dict[str, Callable[[HttpClient, int], None]] = {
        "claims": lambda client, number: _claim(client, hosts[number % len(hosts)]),
        "candidates": lambda client, _: _ask(client),
    }
    found = {}
    for name, work in works.items():
        turns: dict[str, list[float]] = {"maint": [], "ready": []}
        for _ in range(_ROUNDS):
            for state, rates in turns.items():
                proxy.set_state(second, state)
                if state == "ready":
                    proxy.wait_for(second, up=True)
                rates.append(_rate(proxy.port, work, seconds))
        found[name] = (statistics.median(turns["maint"]), statistics.median(turns["ready"]))
    return found


def _rate(port: int, work: Callable[[HttpClient, int], None], seconds: float) -> float:
    records = Records()
    end = time.monotonic() + seconds

    def run(number: int) -> None:
        client = HttpClient(port, records)
        while time.monotonic() < end:
            work(client, number)
            number += _CLIENTS
        client.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(records.sent) / seconds


def _make_hosts(client: HttpClient) -> list[str]:
    hosts = [str(uuid.uuid4()) for _ in range(_HOSTS)]
    for host in hosts:
        client.send("POST", "/resource_providers", {"name": host, "uuid": host})
        body = {
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 100_000}, "MEMORY_MB": {"total": 10_000_000}},
        }
        client.send("PUT", f"/resource_providers/{host}/inventories", body)
    return hosts


def _claim(client: HttpClient, host: str) -> None:
    body = {
        "allocations": {host: {"resources": {"VCPU": 1, "MEMORY_MB": 1}}},
        "project_id": "cluster",
        "user_id": "cluster",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    client.send("PUT", f"/allocations/{uuid.uuid4()}", body)


def _ask(client: HttpClient) -> None:
    client.send("GET", "/allocation_candidates?resources=VCPU:1,MEMORY_MB:64&limit=10")
