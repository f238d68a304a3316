#!/usr/bin/env python3
"""Measure export, import and triggers: `.venv/bin/python bench/moving.py --help`."""

from __future__ import annotations

import argparse
import http.client
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from uuid import NAMESPACE_OID, uuid5

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import os_resource_classes
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from databases import KINDS, open_databases
from roost.moving.export_format import export_lines, line_of, new_digests
from roost.moving.exporting import write_export
from roost.moving.importing import import_export
from roost.store.database import Database, DatabaseOptions
from roost.store.journal.triggers import install_triggers, remove_triggers
from roost.store.migrations.schema import sync_schema
from support.servers.live_server import LiveServer, ReferenceServer

ROOT = Path(__file__).resolve().parent.parent
NOW = "2026-01-01T00:00:00"
PER_HOST = 7
CLAIMS = 150
ROWS = 200


def uuid_of(kind: str, number: int) -> str:
    """A uuid for each kind and number."""
    return str(uuid5(NAMESPACE_OID, f"{kind} {number}"))


def rows(hosts: int) -> dict[str, Iterator[list[Any]]]:
    """The rows of a cloud: each host has a root, two NUMA nodes and four devices."""
    providers = hosts * PER_HOST
    traits = 300
    consumers = hosts * 2

    def root(provider: int) -> int:
        return (provider - 1) // PER_HOST * PER_HOST + 1

    return {
        "resource_classes": (
            [NOW, None, i, n] for i, n in enumerate(os_resource_classes.STANDARDS)
        ),
        "traits": ([NOW, None, i, f"CUSTOM_T{i}"] for i in range(1, traits + 1)),
        "placement_aggregates": ([NOW, None, i, uuid_of("a", i)] for i in range(1, 101)),
        "projects": ([NOW, None, i, uuid_of("p", i)] for i in range(1, 101)),
        "users": ([NOW, None, i, uuid_of("u", i)] for i in range(1, 101)),
        "consumer_types": ([NOW, None, i, n] for i, n in ((1, "INSTANCE"),)),
        "consumers": (
            [NOW, NOW, i, uuid_of("c", i), i % 100 + 1, i % 100 + 1, 1, 1]
            for i in range(1, consumers + 1)
        ),
        "resource_providers": (
            [
                NOW,
                NOW,
                i,
                uuid_of("r", i),
                f"provider {i}",
                3,
                root(i),
                None if root(i) == i else root(i),
            ]
            for i in range(1, providers + 1)
        ),
        "inventories": (
            [NOW, None, i * 3 + c, i, c, 64, 0, 1, 64, 1, 1.5]
            for i in range(1, providers + 1)
            for c in range(3)
        ),
        "resource_provider_traits": (
            [NOW, None, (i + t) % traits + 1, i]
            for i in range(1, providers + 1)
            for t in sorted(range(3), key=lambda t: (i + t) % traits)
        ),
        "resource_provider_aggregates": (
            [NOW, None, i, i % 100 + 1] for i in range(1, providers + 1, PER_HOST)
        ),
        "allocations": (
            [NOW, None, i * 3 + c, (i - 1) // 2 * PER_HOST + 1 + c, uuid_of("c", i), c, 2]
            for i in range(1, consumers + 1)
            for c in range(3)
        ),
    }


def write_synthetic(path: Path, hosts: int) -> None:
    """Write the rows of a cloud as an export."""
    counts = {name: sum(1 for _ in its) for name, its in rows(hosts).items()}
    made = rows(hosts)
    with path.open("wb") as file:
        file.writelines(
            export_lines(counts, new_digests(), lambda part: ([row] for row in made[part.name]))
        )


@contextmanager
def stopwatch(figures: list[str]) -> Iterator[None]:
    """Add the seconds of the clock and of this process to the figures."""
    wall, cpu = time.monotonic(), time.process_time()
    yield
    figures += [f"{time.monotonic() - wall:.1f}", f"{time.process_time() - cpu:.1f}"]


def measure_moves(console: Console, hosts: int, kinds: list[str], directory: Path) -> None:
    """Import a cloud into each database, and export it again."""
    source = directory / "synthetic.jsonl"
    write_synthetic(source, hosts)
    lines = sum(1 for _ in source.open("rb"))
    table = Table(
        "database",
        "import s",
        "CPU s",
        "export s",
        "CPU s",
        "equal",
        title=f"{hosts} hosts, {lines} rows, {source.stat().st_size / 1e6:.0f} MB",
    )
    for kind in kinds:
        with open_databases(kind, directory / kind, keep=False) as databases:
            options = DatabaseOptions(url=databases.create().url, silence_seconds=3600)
            with closing(Database(options)) as database:
                figures: list[str] = []
                with source.open("rb") as file, stopwatch(figures):
                    import_export(database, file)
                exported = directory / f"{kind}.jsonl"
                with exported.open("wb") as file, stopwatch(figures):
                    write_export(database, file)
            equal = exported.read_bytes() == source.read_bytes()
            table.add_row(kind, *figures, "yes" if equal else "NO")
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(f"peak memory of this process: {peak:.0f} MB")


def client(server: LiveServer) -> Callable[[str, str, Any], int]:
    """A function that sends requests over one connection, and returns the status."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def send(method: str, path: str, body: Any = None) -> int:
        headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.27"}
        data = None if body is None else line_of(body)
        if data:
            headers["content-type"] = "application/json"
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        response.read()
        return response.status

    return send


def claims_ms(server: LiveServer, offset: int) -> float:
    """The median of the milliseconds for a claim of three classes and its release."""
    send = client(server)
    provider = uuid_of("r", 1)
    if not offset:
        send("POST", "/resource_providers", {"name": "r", "uuid": provider})
        fields = {name: {"total": 100000} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
        send(
            "PUT",
            f"/resource_providers/{provider}/inventories",
            {"resource_provider_generation": 0, "inventories": fields},
        )
    body = {
        "allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1}}},
        "project_id": "p",
        "user_id": "u",
    }
    seconds = []
    for number in range(offset, offset + CLAIMS):
        began = time.monotonic()
        assert send("PUT", f"/allocations/{uuid_of('c', number)}", body) == 204
        assert send("DELETE", f"/allocations/{uuid_of('c', number)}", None) == 204
        seconds.append(time.monotonic() - began)
    # The machine has other work: a mean would measure that as well.
    return median(seconds) * 1000


def measure_triggers(console: Console, kinds: list[str], directory: Path) -> None:
    """Claim with and without triggers, by the reference and by Roost."""
    table = Table(
        "database",
        "service",
        "without",
        "with triggers",
        "with, again",
        "without, again",
        title=f"ms for a claim and its release ({CLAIMS} times)",
    )
    for kind in kinds:
        with open_databases(kind, directory / kind, keep=False) as databases:
            for name in ("reference", "roost"):
                url = databases.create().url
                place = directory / f"{kind}-{name}"
                place.mkdir()
                with closing(Database(DatabaseOptions(url=url))) as database:
                    sync_schema(database)
                    server = (
                        ReferenceServer(ROOT / ".venv-reference", place, url)
                        if name == "reference"
                        else LiveServer(url, place, workers=1)
                    )
                    with server:
                        figures = [claims_ms(server, 0)]
                        install_triggers(database)
                        figures += [claims_ms(server, 1000), claims_ms(server, 2000)]
                        remove_triggers(database)
                        figures.append(claims_ms(server, 3000))
                table.add_row(kind, name, *(f"{figure:.1f}" for figure in figures))
    console.print(table)


def row_microseconds(engine: sa.Engine) -> float:
    """The microseconds of one statement that inserts an allocation, in a long transaction.

    The lowest of several rounds counts: other work of the machine makes the rest longer.
    """
    statement = sa.text(
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
        " VALUES (1, 'c', 0, 1)"
    )
    rounds = []
    for _ in range(15):
        with engine.connect() as connection:
            connection.execute(statement)
            began = time.perf_counter()
            for _ in range(ROWS):
                connection.execute(statement)
            rounds.append((time.perf_counter() - began) / ROWS)
            connection.rollback()
    return min(rounds) * 1e6


def measure_rows(console: Console, kinds: list[str], directory: Path) -> None:
    """Insert allocations by SQL, with and without triggers, in turns."""
    table = Table("database", "without", "with", "without", "with", title="us for a statement")
    for kind in kinds:
        with open_databases(kind, directory / kind, keep=False) as databases:
            url = databases.create().url
            engine = sa.create_engine(url)
            with closing(Database(DatabaseOptions(url=url))) as database:
                sync_schema(database)
                figures = []
                for _ in range(2):
                    figures.append(row_microseconds(engine))
                    install_triggers(database)
                    figures.append(row_microseconds(engine))
                    remove_triggers(database)
            engine.dispose()
            table.add_row(kind, *(f"{figure:.0f}" for figure in figures))
    console.print(table)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["moves", "triggers", "rows"])
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--database", action="append", choices=KINDS)
    arguments = parser.parse_args()
    kinds = arguments.database or list(KINDS)
    with tempfile.TemporaryDirectory(prefix="roost-moving-") as directory:
        if arguments.what == "moves":
            measure_moves(Console(), arguments.hosts, kinds, Path(directory))
        elif arguments.what == "rows":
            measure_rows(Console(), kinds, Path(directory))
        else:
            measure_triggers(Console(), kinds, Path(directory))


if __name__ == "__main__":
    main()
