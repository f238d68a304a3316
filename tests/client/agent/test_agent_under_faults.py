"""The agent beside a fault injector: files of its machine vanish, break and come back.

`ROOST_TEST_LOAD_SECONDS` is the time on each server, 30 seconds by default.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from support.client.captured_machines import captured
from support.client.machine_files import MachineFiles
from support.client.operator_edits import Operator, Picture
from support.client.random_choices import Choices
from support.servers.live_server import LiveServer, clean_environment

SECONDS = float(os.environ.get("ROOST_TEST_LOAD_SECONDS", "30"))
STEP_SECONDS = 0.25
GROWTH_MEGABYTES_MAX = 4
BY_HAND = "CUSTOM_RESERVED_FOR_LAB"


@contextmanager
def running_agent(server: LiveServer, host: str, root: Path, records: Path) -> Iterator[int]:
    """The process of an agent that reports every second; yields its id."""
    command = [str(Path(sys.executable).with_name("roost")), "agent", "--driver", "linux"]
    command += ["--option", f"root={root}", "--name", host, "--interval", "1"]
    command += ["--records", str(records), "--url", server.url]
    with (root.parent / "agent.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=clean_environment({}),
        )
        try:
            yield process.pid
            assert process.poll() is None, (root.parent / "agent.log").read_text()[-2000:]
        finally:
            process.kill()
            process.wait()


def megabytes(process_id: int) -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def wait_for(operator: Operator, host: str, wanted: dict[str, Picture]) -> None:
    """Wait for a tree that equals the wanted one."""
    for _ in range(60):
        tree = operator.tree(host)
        if tree == wanted:
            return
        time.sleep(1)
    differing = [name for name in tree.keys() | wanted.keys() if tree.get(name) != wanted.get(name)]
    raise AssertionError([(name, tree.get(name), wanted.get(name)) for name in differing])


def reported_tree(operator: Operator, host: str) -> dict[str, Picture]:
    """The tree of the host, once the agent has reported all of it."""
    tree: dict[str, Picture] = {}
    for _ in range(60):
        before, tree = tree, operator.tree(host)
        if tree and tree == before:
            return tree
        time.sleep(2)
    raise AssertionError("the agent does not come to an end")


@pytest.mark.long
def test_an_agent_under_faults_loses_nothing_and_needs_no_more_memory(
    server: LiveServer, tmp_path: Path
) -> None:
    host = f"host-{uuid4()}"
    operator = Operator(server.client())
    files = MachineFiles(captured("two-socket-server"), tmp_path / "root")
    choice = random.Random(SECONDS)
    faults = 0
    sizes: list[float] = []
    with running_agent(server, host, files.root, tmp_path / "records") as process_id:
        for name in reported_tree(operator, host):
            operator.add_traits(name, BY_HAND)
        before = operator.tree(host)
        uuids = {name: operator.uuid(name) for name in before}
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if choice.random() < 0.3:
                files.restore()
            else:
                files.disturb(Choices(choice.randbytes(8)))
                faults += 1
            time.sleep(STEP_SECONDS)
            sizes.append(megabytes(process_id))
            if len(sizes) % 10 == 0:
                assert {name: operator.uuid(name) for name in uuids} == uuids
        files.restore()
        wait_for(operator, host, before)
    assert {name: operator.uuid(name) for name in uuids} == uuids
    third = len(sizes) // 3
    growth = statistics.median(sizes[-third:]) - statistics.median(sizes[third : 2 * third])
    print(f"\n{faults} faults in {SECONDS:g} s, {len(uuids)} providers, {growth:+.1f} MB")
    assert growth < GROWTH_MEGABYTES_MAX
