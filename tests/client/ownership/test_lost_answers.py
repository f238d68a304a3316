"""An owner removes what it wrote, even if it got no answer to the write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from roost.client.errors import PlacementError
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import HttpTransport
from roost.client.transport.retrying import RetryPolicy
from support.client.declarations import declaration, declared
from support.client.operator_edits import Operator
from support.servers.faulty_proxy import Fault, FaultyProxy
from support.servers.live_server import LiveServer

pytestmark = pytest.mark.parametrize("server", ["roost"], indirect=True)


@pytest.fixture
def proxy(server: LiveServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.port) as running:
        yield running


@pytest.fixture
def faulty(proxy: FaultyProxy) -> Iterator[HttpTransport]:
    """A connection without waits before repetitions."""
    at_once = RetryPolicy(sleep=lambda _: None)
    transport = HttpTransport(proxy.url, "admin", retries=at_once)
    yield transport
    transport.close()


FAULTS = [
    [Fault.LOST_ANSWER] * 4,
    [Fault.GATEWAY_TIMEOUT] * 4,
    [Fault.INTERNAL_ERROR],
    [Fault.GARBLED],
    [Fault.LOST_ANSWER] + [Fault.UNAVAILABLE] * 3,
    [Fault.LOST_ANSWER, Fault.INTERNAL_ERROR],
    [Fault.SLOW] + [Fault.UNAVAILABLE] * 3,
    [Fault.LATE] * 4,
]


@pytest.mark.parametrize("faults", FAULTS, ids=lambda steps: "-".join(step.name for step in steps))
@pytest.mark.parametrize("before", range(3))
def test_resources_whose_write_had_no_answer_are_removed_once_undeclared(
    *,
    operator: Operator,
    host: str,
    proxy: FaultyProxy,
    faulty: HttpTransport,
    before: int,
    faults: list[Fault],
) -> None:
    """The creation, the inventory and the traits of a provider."""
    operator.create(host)
    reporter = DeclarativeReporter(Reporter(faulty, attempts=1), "agent", InMemoryOwnershipStore())
    # The server has to know the owner's trait: then each further write is one to a provider.
    always = [declared(host), declared(f"{host}-always", host)]
    reporter.declare(declaration(*always), host)
    numa = declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}})
    proxy.plan(writes=[*[None] * before, *faults])
    with suppress(PlacementError):
        reporter.declare(declaration(*always, numa), host)
    proxy.plan()
    proxy.settle()
    reporter.reporter.forget()
    reporter.declare(declaration(*always), host)
    assert operator.tree(host).keys() == {host, f"{host}-always"}
