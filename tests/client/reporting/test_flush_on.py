"""Flushing again: after a flush, after a conflict, after a lost answer."""

from __future__ import annotations

import pytest

from roost.client.errors import ResourceProviderSyncFailed, TraitCreationFailed
from roost.client.reporting.reporter import Reporter
from support.client.live_providers import LiveProviders
from support.stubs.scripted_drivers import EditingDriver
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server, refusal

AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"


def test_a_flushed_tree_can_be_edited_and_flushed_again(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host")
    tree = reporter.fetch(host)
    for trait in (AVX, SSE):
        tree.add_traits(host, trait)
        reporter.flush(host, tree)
    assert live_providers.traits("host") == {AVX, SSE}


@one_server
def test_only_changed_providers_are_read_again_after_a_conflict(
    live_providers: LiveProviders,
    reporter: Reporter,
    tampering: TamperingTransport,
    transport: CountingTransport,
) -> None:
    host = live_providers.add("host")
    for number in range(5):
        live_providers.add(f"child{number}", "host")
    reporter.fetch(host)
    transport.forget()
    tampering.before(
        "PUT host/traits".replace("host", "*" + host),
        lambda: live_providers.set_traits("host", SSE),
    )
    reporter.report(EditingDriver(lambda tree: tree.add_traits(host, AVX)), "host", host)
    assert live_providers.traits("host") == {AVX, SSE}
    reads = [request.path for request in transport.requests if request.method == "GET"]
    assert not [path for path in reads if "/resource_providers/" in path and host not in path]


@one_server
@pytest.mark.parametrize("status", [502, 504])
def test_an_error_of_a_gateway_to_a_write_is_a_lost_answer(
    live_providers: LiveProviders, reporter: Reporter, tampering: TamperingTransport, status: int
) -> None:
    host = live_providers.add("host")
    tampering.answer("PUT */traits", refusal(status))
    reporter.report(EditingDriver(lambda tree: tree.add_traits(host, AVX)), "host", host)
    assert live_providers.traits("host") == {AVX}


@one_server
def test_inventories_are_written_even_if_a_trait_cannot_be_created(
    live_providers: LiveProviders, reporter: Reporter
) -> None:
    host = live_providers.add("host")
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 8}})
    tree.add_traits(host, "HW_CPU_OF_NEXT_YEAR")
    with pytest.raises(ResourceProviderSyncFailed) as caught:
        reporter.flush(host, tree)
    assert isinstance(caught.value.__cause__, TraitCreationFailed)
    assert live_providers.totals("host") == {"VCPU": 8}
