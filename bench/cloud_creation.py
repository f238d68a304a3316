"""Scenario: clients create hosts over the API, as the compute services of a new cloud do."""

from __future__ import annotations

import random
import statistics
import uuid
from collections.abc import Callable
from contextlib import ExitStack

import clouds
from clouds import COMPUTE_TRAITS, FUNCTION_TRAITS, FUNCTIONS_PER_NODE, NODES
from crowds import CrowdFailed, Effort, run_crowd
from databases import DatabaseError, open_databases
from http_connection import HttpConnection, encode
from results import Column, Table
from stage import Scenario, Stage
from targets import RequestFailed, Target

CLIENTS = 6
HOSTS, QUICK_HOSTS = 40, 12
"""Hosts that all clients create in a turn."""
AGGREGATES = 5

TABLE = Table(
    f"Creating a cloud over the API: {CLIENTS} clients, seven providers a host with inventories, "
    "traits and aggregates; requests and writes a second,\nms CPU of the server a request",
    (Column("requests/s", ",.0f"), Column("writes/s", ",.0f"), Column("ms CPU", ".2f")),
)

Host = list[bytes]
"""The requests that create a host, in their order."""


def cloud_creation(kind: str) -> Scenario:
    """A new cloud on one kind of database, and on SQLite one by the reference too."""

    def run(stage: Stage) -> None:
        with ExitStack() as stack:
            home = stack.enter_context(stage.home())
            try:
                databases = stack.enter_context(open_databases(kind, home, keep=False))
            except DatabaseError as error:
                stage.results.progress(f"creation-{kind} is left out: {error}")
                return
            url = databases.create().url
            clouds.create_tables(url, stage.roost)
            with stage.run_roost(url) as target:
                _measure(stage, target, kind, QUICK_HOSTS if stage.quick else HOSTS, stage.rounds)
            if kind == "sqlite":
                other_url = databases.create().url
                clouds.create_tables(other_url, stage.roost)
                # With several processes, the reference answers 500: the database is locked.
                with stage.run_reference(other_url) as reference:
                    _measure(stage, reference, kind, CLIENTS, 1)

    return run


def _measure(stage: Stage, target: Target, kind: str, hosts: int, rounds: int) -> None:
    title = f"creating a cloud: {target.name} on {kind}"
    stage.results.progress(title)
    writer = HostWriter()
    for request in writer.names():
        HttpConnection(target).send(request)
    efforts = []
    try:
        for _ in range(rounds):
            made = [writer.host() for _ in range(hosts + CLIENTS)]
            warm_up, measured = made[:CLIENTS], made[CLIENTS:]
            connect = _connector(target)
            efforts.append(run_crowd(CLIENTS, connect, measured, warm_up, target.cpu_seconds))
    except CrowdFailed as error:
        stage.results.failure(f"{title}: {error}")
        return
    host = writer.host()
    writes = sum(not request.startswith(b"GET") for request in host)
    rate = statistics.median(effort.rate for effort in efforts) * len(host)
    milliseconds = statistics.median(map(_cpu_of_host, efforts)) * 1000 / len(host)
    stage.results.add(TABLE, title, rate, rate * writes / len(host), milliseconds)
    if target.name == "roost":
        stage.results.at_least(f"{title}, requests a second", rate, 700, "/s")


def _cpu_of_host(effort: Effort) -> float:
    return effort.server_cpu / effort.jobs


def _connector(target: Target) -> Callable[[], Callable[[Host], int]]:
    def connect() -> Callable[[Host], int]:
        connection = HttpConnection(target)

        def create(host: Host) -> int:
            for request in host:
                status, answer = connection.send(request)
                if status >= 300:
                    line = request.split(b"\r\n", 1)[0].decode()
                    raise RequestFailed(f"{line}: {status} {answer[:300]!r}")
            return len(host)

        return create

    return connect


class HostWriter:
    """Makes the requests of host after host; the same in every run."""

    def __init__(self) -> None:
        self._random = random.Random(2026)
        self._aggregates = [self._uuid() for _ in range(AGGREGATES)]

    def names(self) -> list[bytes]:
        """The requests that create the traits of all hosts."""
        return [
            encode("PUT", f"/traits/{_physnet(number)}") for number in range(FUNCTIONS_PER_NODE)
        ]

    def host(self) -> Host:
        """Look for the host, create its root, read what the root has, then write the tree."""
        root = self._uuid()
        path = f"/resource_providers/{root}"
        requests = [encode("GET", f"/resource_providers?in_tree={root}"), _create(root, None)]
        requests += [
            encode("GET", f"{path}/{part}") for part in ("inventories", "aggregates", "traits")
        ]
        tree: list[tuple[str, str | None, dict[str, int], list[str]]] = [
            (root, None, {"DISK_GB": 2_000}, list(COMPUTE_TRAITS))
        ]
        for _ in range(NODES):
            node = self._uuid()
            resources = {"VCPU": clouds.NODE_CPUS, "MEMORY_MB": clouds.NODE_MEMORY_MB}
            tree.append((node, root, resources, ["HW_NUMA_ROOT", "HW_CPU_X86_AVX2"]))
            for number in range(FUNCTIONS_PER_NODE):
                traits = [*FUNCTION_TRAITS, _physnet(number)]
                tree.append((self._uuid(), node, {"SRIOV_NET_VF": 8}, traits))
        requests += [_create(provider, parent) for provider, parent, _, _ in tree[1:]]
        requests += [_inventories(provider, totals) for provider, _, totals, _ in tree]
        requests += [_traits(provider, traits) for provider, _, _, traits in tree]
        aggregate = self._random.choice(self._aggregates)
        requests.append(
            encode(
                "PUT",
                f"{path}/aggregates",
                {"aggregates": [aggregate], "resource_provider_generation": 2},
            )
        )
        return requests

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


def _physnet(number: int) -> str:
    return f"CUSTOM_PHYSNET_{number}"


def _create(provider: str, parent: str | None) -> bytes:
    body = {"name": f"provider-{provider}", "uuid": provider, "parent_provider_uuid": parent}
    return encode("POST", "/resource_providers", body)


def _inventories(provider: str, totals: dict[str, int]) -> bytes:
    records = {
        name: {
            "total": total,
            "reserved": 0,
            "min_unit": 1,
            "max_unit": total,
            "step_size": 1,
            "allocation_ratio": 1.0,
        }
        for name, total in totals.items()
    }
    body = {"inventories": records, "resource_provider_generation": 0}
    return encode("PUT", f"/resource_providers/{provider}/inventories", body)


def _traits(provider: str, traits: list[str]) -> bytes:
    body = {"traits": traits, "resource_provider_generation": 1}
    return encode("PUT", f"/resource_providers/{provider}/traits", body)
