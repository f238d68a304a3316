"""A rolling upgrade under load: an old version and this one on one database."""

from __future__ import annotations

import argparse
import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rich.console import Console

from http_client import HttpClient, InDoubt, Records
from ledger import Ledger
from node import ClusterError, Node
from pair import Pair, open_pair
from tenants import Crowd
from versions import last_tag, sync, unpack

# Versions whose source names it can be restarted on the schema of a newer version.
_MARKER = "lets_this_version_serve"


def run_upgrade(
    arguments: argparse.Namespace, url: str, directory: Path, console: Console
) -> list[str]:
    """Upgrade two servers one at a time under load, and return which promises were broken."""
    ref = arguments.old or last_tag()
    if not ref:
        console.print("not run: git has no tag here; CLUSTER='--old <git ref>' names a version")
        return []
    old, environment = unpack(ref, directory / "old")
    console.print(f"from {ref} to the version of this folder")
    sync(old, url, **environment)
    with open_pair(old, url, directory, environment) as pair:
        upgrade = _Upgrade(arguments, pair, console)
        upgrade.run(can_restart=_has_marker(directory / "old"))
        return upgrade.wrongs


def _has_marker(directory: Path) -> bool:
    return any(_MARKER in path.read_text() for path in directory.rglob("schema.py"))


@dataclass
class _Upgrade:
    """The steps of an upgrade, with load before, during and after each."""

    arguments: argparse.Namespace
    pair: Pair
    console: Console
    wrongs: list[str] = field(default_factory=list)
    records: Records = field(default_factory=Records)
    ledger: Ledger = field(default_factory=Ledger)

    def run(self, *, can_restart: bool) -> None:
        """Migrate while the old version serves, then replace the servers one at a time."""
        new = [str(self.arguments.roost)]
        one, two = self.pair.nodes
        crowd = Crowd(self.pair.proxy.port, self.records, self.ledger, self.arguments.clients)
        comparer = _Comparer(self.pair.nodes, self.ledger)
        crowd.start()
        comparer.start()
        try:
            self._step("both servers old", lambda: None)
            self._step("the new version migrates", lambda: sync(new, one.database_url))
            self._step("server one new, two old", lambda: self._replace(one, new))
            if can_restart:
                self._step("the old server starts again", lambda: self._replace(two, two.command))
            else:
                self.console.print("not run: this old version cannot start on a newer schema")
            self._step("both servers new", lambda: self._replace(two, new))
        finally:
            comparer.stop()
            crowd.stop()
        for node in self.pair.nodes:
            told = self.ledger.settle(HttpClient(node.port, Records()), node.name)
            held = f"{len(self.ledger.held)} consumers compared"
            self.console.print(f"server {node.name}: {held}; in doubt: {dict(told)}")
        self.console.print(
            f"{self.ledger.reads_after_writes} reads of own writes, {self.ledger.crossed} on "
            f"another server than the write; {comparer.compared} answers of both servers compared"
        )
        if self.ledger.wrongs:
            self.wrongs.append(self.ledger.summary())

    def _step(self, name: str, do: Callable[[], None]) -> None:
        begin = monotonic()
        try:
            do()
        except ClusterError as error:
            self.wrongs.append(f"{name}: {error}")
        sleep(self.arguments.seconds)
        sent = self.records.between(begin, monotonic())
        failed = [one for one in sent if one.failed]
        rate = len(sent) / (monotonic() - begin)
        self.console.print(f"{name}: {len(sent)} requests, {len(failed)} failed, {rate:.0f}/s")
        if failed:
            told = Counter(f"{one.method} {one.status} {one.problem[:200]}" for one in failed)
            self.wrongs.append(f"{name}: {len(failed)} requests failed: {told.most_common(5)}")

    def _replace(self, node: Node, command: list[str]) -> None:
        """Take a server out as an operator does, start another version, and take it in."""
        self.pair.proxy.set_state(node.name, "maint")
        node.terminate()
        if command is not node.command:
            node.command, node.environment = command, {}
        node.start()
        self.pair.proxy.set_state(node.name, "ready")
        self.pair.proxy.wait_for(node.name, up=True)


class _Comparer:
    """Writes by turns to both servers, and asks both the same after every write."""

    def __init__(self, nodes: Sequence[Node], ledger: Ledger) -> None:
        self.compared = 0
        self._clients = [HttpClient(node.port, Records()) for node in nodes]
        self._ledger = ledger
        self._host = str(uuid.uuid4())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Make a provider that nothing else writes to, and begin."""
        client = self._clients[0]
        client.send("POST", "/resource_providers", {"name": self._host, "uuid": self._host})
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1 << 20}}}
        client.send("PUT", f"/resource_providers/{self._host}/inventories", body)
        self._thread.start()

    def stop(self) -> None:
        """End after the comparison that runs."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        turn = 0
        held: list[str] = []
        while not self._over.is_set():
            turn += 1
            writer = self._clients[turn % 2]
            try:
                if len(held) > 20:
                    writer.send("DELETE", f"/allocations/{held.pop(0)}")
                else:
                    held.append(str(uuid.uuid4()))
                    self._claim(writer, held[-1])
                for path in self._questions(held[-1]):
                    self._compare(path)
            except InDoubt:
                # A server is being replaced.
                sleep(0.05)

    def _claim(self, client: HttpClient, consumer: str) -> None:
        body = {
            "allocations": {self._host: {"resources": {"VCPU": 1}}},
            "project_id": "cluster",
            "user_id": "cluster",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        client.send("PUT", f"/allocations/{consumer}", body)

    def _questions(self, consumer: str) -> list[str]:
        return [
            f"/allocation_candidates?resources=VCPU:1&in_tree={self._host}",
            f"/resource_providers?resources=VCPU:1&in_tree={self._host}",
            f"/resource_providers/{self._host}/usages",
            f"/resource_providers/{self._host}/allocations",
            f"/allocations/{consumer}",
        ]

    def _compare(self, path: str) -> None:
        one, two = (_canonical(client.send("GET", path).json) for client in self._clients)
        if one != two:
            self._ledger.wrong(f"the servers differ about {path}: {one} and {two}")
        self.compared += 1


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True)
