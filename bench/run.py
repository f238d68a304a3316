#!/usr/bin/env python3
"""CPU per request of Roost and of the reference, measured in turns on the same data."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

from databases import open_databases
from server import Server, reference, roost

PROVIDERS = 50
ALLOCATIONS_PER_CLAIM = {"VCPU": 1, "MEMORY_MB": 512}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process_id: int) -> float:
    """The CPU that a process and its children have used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / TICKS
    return own + sum(cpu_seconds(int(child)) for child in children)


@dataclass
class Target:
    """A running server with the benchmark's data in it."""

    name: str
    port: int
    process_id: int
    providers: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """Send one request on a connection of its own; anything but success ends the run."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.38"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status >= 300:
            raise SystemExit(f"{self.name}: {method} {path}: {response.status} {answer[:300]!r}")
        return answer

    def fill(self) -> None:
        """Make hosts with room for every claim of a run."""
        for _ in range(PROVIDERS):
            provider = str(uuid.uuid4())
            self.request("POST", "/resource_providers", {"name": provider, "uuid": provider})
            inventories = {
                name: {"total": 2_000_000_000} for name in ("VCPU", "MEMORY_MB", "DISK_GB")
            }
            self.request(
                "PUT",
                f"/resource_providers/{provider}/inventories",
                {"resource_provider_generation": 0, "inventories": inventories},
            )
            self.providers.append(provider)

    def claim(self, number: int) -> None:
        """Claim from two providers for a new consumer."""
        consumer = str(uuid.uuid4())
        one, other = (self.providers[(number + step) % PROVIDERS] for step in (0, 1))
        self.request(
            "PUT",
            f"/allocations/{consumer}",
            {
                "allocations": {
                    one: {"resources": ALLOCATIONS_PER_CLAIM},
                    other: {"resources": {"DISK_GB": 5}},
                },
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            },
        )
        self.consumers.append(consumer)

    def provider(self, number: int) -> str:
        """The path of one of the providers."""
        return f"/resource_providers/{self.providers[number % PROVIDERS]}"


Work = Callable[[Target, int], object]

WORK: dict[str, Work] = {
    "claim (PUT /allocations, 2 providers)": lambda target, number: target.claim(number),
    "GET /allocations of a consumer": lambda target, number: target.request(
        "GET", f"/allocations/{target.consumers[number % len(target.consumers)]}"
    ),
    "GET one provider": lambda target, number: target.request("GET", target.provider(number)),
    "GET inventories of a provider": lambda target, number: target.request(
        "GET", f"{target.provider(number)}/inventories"
    ),
    "GET usages of a provider": lambda target, number: target.request(
        "GET", f"{target.provider(number)}/usages"
    ),
    "GET providers with room (50 found)": lambda target, number: target.request(
        "GET", f"/resource_providers?resources=VCPU:{number % 7 + 1},DISK_GB:10"
    ),
}


def start(stack: ExitStack, directory: Path, roost_path: Path, kind: str) -> Iterator[Target]:
    """Start both servers, each on an empty database of its own."""
    for program in (roost(roost_path), reference()):
        home = directory / program.name
        databases = stack.enter_context(open_databases(kind, home, keep=False))
        options = {"placement_database": {"sqlite_synchronous": "true"}}
        server = Server(program, databases.create(), home, options, {})
        stack.enter_context(server)
        assert server.process_id is not None
        target = Target(program.name, server.port, server.process_id)
        print(f"filling {program.name} ...", flush=True)
        target.fill()
        yield target


def measure(targets: list[Target], rounds: int, requests: int) -> None:
    """Print one row for each kind of work."""
    print(f"\n{'CPU of the server, ms a request':40} {'roost':>9} {'reference':>10} {'ratio':>8}")
    for name, work in WORK.items():
        used = {target.name: 0.0 for target in targets}
        for target in targets:
            for number in range(5):
                work(target, number)
        for _ in range(rounds):
            for target in targets:
                before = cpu_seconds(target.process_id)
                for number in range(requests):
                    work(target, number)
                used[target.name] += cpu_seconds(target.process_id) - before
        ours, theirs = (used[target.name] / rounds / requests * 1000 for target in targets)
        print(f"{name:40} {ours:9.3f} {theirs:10.3f} {theirs / ours:7.1f}x", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roost", type=Path, default=Path(".venv/bin/roost"))
    parser.add_argument("--rounds", type=int, default=4, help="turns of each server")
    parser.add_argument("--requests", type=int, default=100, help="requests in a turn")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="roost-bench-") as directory,
        ExitStack() as stack,
    ):
        targets = list(start(stack, Path(directory), arguments.roost.resolve(), "sqlite"))
        measure(targets, arguments.rounds, arguments.requests)


if __name__ == "__main__":
    main()
