"""An operator's edit beside other writers of the same provider."""

from __future__ import annotations

import pytest

from roost.client.errors import PlacementError
from roost.client.placement.placement import Administration
from roost.client.provider_edit import EditChange, FieldAssignment, ProviderEdit, carry_out
from roost.client.reading.lookup import find_provider
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server, refusal

EDIT = ProviderEdit(
    assignments=(FieldAssignment("VCPU", "reserved", 2),),
    added_traits=frozenset({"HW_CPU_X86_AVX2"}),
    added_aggregates=frozenset({"aaaaaaaa-0000-4000-8000-000000000001"}),
)


@pytest.fixture
def disturbed(transport: CountingTransport) -> TamperingTransport:
    return TamperingTransport(transport)


def edit(live_providers: LiveProviders, disturbed: TamperingTransport) -> list[str]:
    """Edit the host; what was made, in words."""
    server = Administration(disturbed)
    made: list[EditChange] = []
    carry_out(server, find_provider(server, live_providers.uuid("host")), EDIT, made)
    return [line.partition(": ")[2] for change in made for line in change.lines()]


@pytest.mark.parametrize("what", ["inventories", "aggregates", "traits"])
def test_an_edit_that_meets_another_writer_keeps_what_that_one_wrote(
    live_providers: LiveProviders, disturbed: TamperingTransport, what: str
) -> None:
    live_providers.add("host", totals={"VCPU": 8})

    def write() -> None:
        body = {
            "resource_provider_generation": live_providers.generation("host"),
            "inventories": {**live_providers.inventories("host"), "DISK_GB": {"total": 5}},
        }
        live_providers.send("PUT", live_providers.path("host", "inventories"), body)

    disturbed.before(f"PUT */{what}", write)
    made = edit(live_providers, disturbed)
    assert disturbed.left == []
    assert sorted(made) == [
        "aggregates added: aaaaaaaa-0000-4000-8000-000000000001",
        "inventory VCPU reserved 0 -> 2",
        "traits added: HW_CPU_X86_AVX2",
    ]
    assert live_providers.totals("host") == {"VCPU": 8, "DISK_GB": 5}
    assert live_providers.inventories("host")["VCPU"]["reserved"] == 2
    assert live_providers.traits("host") == {"HW_CPU_X86_AVX2"}


@one_server
def test_an_edit_gives_up_after_four_attempts(
    live_providers: LiveProviders, disturbed: TamperingTransport
) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    conflict = refusal(409, "resource provider generation conflict", "placement.concurrent_update")
    disturbed.answer("PUT */inventories", conflict, times=4)
    with pytest.raises(PlacementError, match="generation conflict") as refused:
        edit(live_providers, disturbed)
    assert str(refused.value).endswith("\nNext: roost help generation")
    assert disturbed.left == []
