"""Scenario: claims, while clients follow the changes or none does."""

from __future__ import annotations

import multiprocessing
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event

import clouds
from meters import Claims, Meter
from results import Column, Table, ratio
from stage import Stage
from targets import HEADERS, Target

HOSTS = 1_000
FOLLOWERS = 100
WARM_UP = 200
# Long enough for several looks of the server into its journal.
SECONDS = 3.0
_READY = b"\n\nid: "
# By then, all followers have what was written while they came.
_SETTLE_SECONDS = 2.0

TABLE = Table(
    "Claims while clients follow the changes: ms a claim",
    (
        Column("wait, none", ".3f"),
        Column(f"wait, {FOLLOWERS}", ".3f"),
        ratio("ratio"),
        Column("CPU, none", ".3f"),
        Column(f"CPU, {FOLLOWERS}", ".3f"),
        ratio("ratio of CPU"),
    ),
)


def run(stage: Stage) -> None:
    """Measure claims in turns, without followers and with them."""
    with stage.servers("followers", clouds.flat(HOSTS, amount=1_000), reference=False) as servers:
        claims = Claims(servers.roost, servers.cloud)
        for number in range(WARM_UP):
            claims.claim(number)
        alone, followed = Meter(servers.roost), Meter(servers.roost)
        for _ in range(stage.rounds):
            alone.run(claims.claim, SECONDS, at_most=100_000)
            with _followers(servers.roost):
                followed.run(claims.claim, SECONDS, at_most=100_000)
    waits, costs = (
        (alone.wall_milliseconds, followed.wall_milliseconds),
        (alone.milliseconds, followed.milliseconds),
    )
    stage.results.add(
        TABLE, f"{HOSTS:,} hosts", *waits, waits[1] / waits[0], *costs, costs[1] / costs[0]
    )
    name = f"claim with {FOLLOWERS} followers / with none"
    stage.results.at_most(f"{name}: wait", waits[1] / waits[0], 1.05)


@contextmanager
def _followers(target: Target) -> Iterator[None]:
    """Clients that follow all changes, in a process of their own."""
    context = multiprocessing.get_context("spawn")
    ready, over = context.Event(), context.Event()
    process = context.Process(target=_follow, args=(target.port, ready, over), daemon=True)
    process.start()
    try:
        if not ready.wait(60):
            raise RuntimeError("The followers do not get their first event.")
        time.sleep(_SETTLE_SECONDS)
        yield
    finally:
        over.set()
        process.join()


def _follow(port: int, ready: Event, over: Event) -> None:
    """Read what the server sends to all clients; ready when each has its first event."""
    lines = [f"{name}: {value}" for name, value in HEADERS.items()]
    head = "\r\n".join(["GET /roost/changes HTTP/1.1", "Host: bench", *lines])
    sent = f"{head}\r\nAccept: text/event-stream\r\n\r\n".encode()
    with ExitStack() as stack:
        waiting: dict[int, socket.socket] = {}
        poll = select.epoll()
        for _ in range(FOLLOWERS):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(sent)
            waiting[client.fileno()] = client
            poll.register(client, select.EPOLLIN)
        clients, greeted = dict(waiting), set()
        while not over.is_set():
            for descriptor, _ in poll.poll(0.05):
                data = clients[descriptor].recv(1 << 20)
                if not data:
                    poll.unregister(descriptor)
                elif descriptor not in greeted and _READY in data:
                    greeted.add(descriptor)
            if len(greeted) == FOLLOWERS:
                ready.set()
