"""An owner finds again what it wrote, whatever the answers left open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from roost.client.errors import PlacementError
from roost.client.owning.owner import Owner
from roost.client.owning.records import MemoryRecords
from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import HttpTransport, Timeouts
from roost.client.transport.retrying import RetryPolicy
from support.by_hand import Operator
from support.faulty_proxy import Fault, FaultyProxy
from support.live_server import LiveServer
from support.owning import declaration, declared

pytestmark = pytest.mark.parametrize("server", ["roost"], indirect=True)


@pytest.fixture
def proxy(server: LiveServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.port) as running:
        yield running


@pytest.fixture
def faulty(proxy: FaultyProxy) -> Iterator[HttpTransport]:
    """A connection on which nobody waits long, or at all before a repetition."""
    at_once = RetryPolicy(sleep=lambda _: None)
    transport = HttpTransport(proxy.url, "admin", timeout=Timeouts(5, 0.3), retries=at_once)
    yield transport
    transport.close()


MISHAPS = [
    [Fault.LOST_ANSWER] * 4,
    [Fault.GATEWAY_TIMEOUT] * 4,
    [Fault.INTERNAL_ERROR],
    [Fault.GARBLED],
    [Fault.LOST_ANSWER] + [Fault.UNAVAILABLE] * 3,
    [Fault.LOST_ANSWER, Fault.INTERNAL_ERROR],
    [Fault.SLOW] + [Fault.UNAVAILABLE] * 3,
    [Fault.LATE] * 4,
]


@pytest.mark.parametrize("mishap", MISHAPS, ids=lambda steps: "-".join(step.name for step in steps))
@pytest.mark.parametrize("before", range(3))
def test_what_was_written_without_an_answer_goes_if_it_is_withdrawn(
    *,
    operator: Operator,
    host: str,
    proxy: FaultyProxy,
    faulty: HttpTransport,
    before: int,
    mishap: list[Fault],
) -> None:
    """Of the creation, the inventory and the traits of a provider."""
    operator.create(host)
    owner = Owner(Reporter(faulty, attempts=1), "agent", MemoryRecords())
    # Has the mark be known to the server, so that each write is one to a provider.
    always = [declared(host), declared(f"{host}-always", host)]
    owner.declare(declaration(*always), host)
    numa = declared(f"{host}-numa", host, inventories={"VCPU": {"total": 8}})
    proxy.plan(writes=[*[None] * before, *mishap])
    with suppress(PlacementError):
        owner.declare(declaration(*always, numa), host)
    proxy.plan()
    proxy.settle()
    owner.reporter.forget()
    owner.declare(declaration(*always), host)
    assert operator.tree(host).keys() == {host, f"{host}-always"}
