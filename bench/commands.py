"""Scenario: what the commands of operators cost on a large cloud, client and server together."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time

import clouds
from results import Column, Table
from stage import Servers, Stage

HOSTS = 10_000
COMMANDS = ("usage", "doctor", "tree show provider-10", "consumer list", "--help")
SECONDS_MAX = 2.0
HELP_SECONDS_MAX = 0.2

TABLE = Table(
    "Commands: seconds of CPU, and seconds until the command ends",
    (
        Column("client", ".2f"),
        Column("server", ".2f"),
        Column("both", ".2f"),
        Column("time", ".2f"),
    ),
)


def run(stage: Stage) -> None:
    """Measure commands on flat and on nested hosts."""
    for name, fill in (("flat", clouds.flat(HOSTS)), ("nested", clouds.nested(HOSTS))):
        with stage.servers(f"commands, {name}", fill, reference=False) as servers:
            for command in COMMANDS:
                both = _measure(stage, servers, name, command)
                if command == "--help":
                    stage.results.at_most(f"roost --help, {name}", both, HELP_SECONDS_MAX, " s")
                elif command in ("usage", "doctor"):
                    goal = f"roost {command} on {HOSTS:,} hosts, {name}"
                    stage.results.at_most(goal, both, SECONDS_MAX, " s")


def _measure(stage: Stage, servers: Servers, name: str, command: str) -> float:
    """Run a command some times; the CPU of client and server together, in the median run."""
    words = [str(stage.roost), *command.split()]
    environ = {**os.environ, "ROOST_URL": f"http://127.0.0.1:{servers.roost.port}"}
    runs = []
    for _ in range(stage.rounds):
        client, server, started = _client_seconds(), servers.roost.cpu_seconds(), time.monotonic()
        subprocess.run(words, env=environ, stdout=subprocess.DEVNULL, check=True)
        wall = time.monotonic() - started
        client, server = _client_seconds() - client, servers.roost.cpu_seconds() - server
        runs.append((client, server, client + server, wall))
    figures: list[float] = [statistics.median(column) for column in zip(*runs, strict=True)]
    stage.results.add(TABLE, f"{name}: roost {command}", *figures)
    return figures[2]


def _client_seconds() -> float:
    """The CPU of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
