"""Two servers on one database, and haproxy before them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from node import Node
from ports import reserved_port
from support.servers.haproxy import HEALTH_PATH, Haproxy


@dataclass(frozen=True)
class Pair:
    """The servers, and the proxy that clients talk to."""

    nodes: tuple[Node, Node]
    proxy: Haproxy
    health_path: str
    """What haproxy asks a server for its health."""


@contextmanager
def open_pair(
    command: list[str], url: str, directory: Path, environment: dict[str, str] | None = None
) -> Iterator[Pair]:
    """Start two servers of a version on a database, and haproxy; end them all at the end."""
    with ExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in range(3)]
        one, two = (
            Node(name, command, port, url, directory, environment=dict(environment or {}))
            for name, port in zip(("one", "two"), ports, strict=False)
        )
        for node in (one, two):
            stack.callback(node.kill)
            node.start()
        # An old version has no route for its health. Its document of versions shows that it lives.
        health_path = HEALTH_PATH if one.status_of(HEALTH_PATH) == 200 else "/"
        proxy = Haproxy(ports[2], directory)
        stack.callback(proxy.stop)
        proxy.start({one.name: one.port, two.name: two.port}, health_path)
        yield Pair((one, two), proxy, health_path)
