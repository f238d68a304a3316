"""`roost provider create`: a provider with all that it has."""

from __future__ import annotations

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.transports.tampering import one_server


def test_a_provider_is_created_below_another_one(live_providers: LiveProviders) -> None:
    live_providers.add("host")
    name, host = live_providers.name("gpu"), live_providers.name("host")
    words = ["--parent", host, "--uuid", live_providers.uuid("gpu"), "--trait", "HW_GPU_API_VULKAN"]
    words += ["--inventory", "VGPU=8", "--inventory", "VGPU:reserved=1"]
    words += ["--aggregate", live_providers.uuid("rack")]
    planned = roost("provider", "create", name, *words, "--dry-run")
    assert planned.lines == [f"{name}: would be created"]
    assert not live_providers.exists("gpu")
    assert roost("provider", "create", name, *words).lines == [f"{name}: created"]
    assert live_providers.provider("gpu")["parent_provider_uuid"] == live_providers.uuid("host")
    assert live_providers.inventories("gpu")["VGPU"]["reserved"] == 1
    assert live_providers.traits("gpu") == {"HW_GPU_API_VULKAN"}
    assert live_providers.aggregates("gpu") == ["rack"]


@pytest.mark.parametrize("arguments", [["--dry-run"], []])
def test_a_name_that_is_taken_is_told_with_its_provider(
    live_providers: LiveProviders, arguments: list[str]
) -> None:
    uuid = live_providers.add("host")
    outcome = roost("provider", "create", live_providers.name("host"), *arguments)
    assert outcome.status == 1
    assert (
        f"A provider has this name already: {live_providers.name('host')} ({uuid})" in outcome.err
    )
    other = roost("provider", "create", live_providers.name("x"), "--uuid", uuid, *arguments)
    assert "A provider has this uuid already" in other.err


@one_server
@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["--inventory", "VCPU:reserved=1"], 2, "The inventory of VCPU has no total."),
        (
            ["--inventory", "CUSTOM_MISSPELT=1"],
            1,
            "No resource class has the name CUSTOM_MISSPELT.",
        ),
        (["--trait", "CUSTOM_MISSPELT"], 1, "No trait has the name CUSTOM_MISSPELT."),
        (["--aggregate", "rack"], 2, "rack is no uuid"),
        (["--uuid", "five"], 2, "five is no uuid"),
    ],
)
def test_a_wrong_word_creates_nothing(
    live_providers: LiveProviders, words: list[str], status: int, sentence: str
) -> None:
    name = live_providers.name("host")
    outcome = roost("provider", "create", name, *words)
    assert outcome.status == status
    assert sentence in outcome.err
    assert roost("provider", "list", "--name", name, "--json").json == []
