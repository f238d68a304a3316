"""The examples of docs/commands.md and docs/ask.md, executed: each prints what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost import __version__
from support.api_client import ApiClient
from support.code_blocks import code_blocks
from support.roost_command import roost
from support.servers.live_server import LiveServer

DOCS = Path(__file__).parents[3] / "docs"

RACK = "aaaaaaaa-0000-4000-8000-000000000001"
INSTANCE = "11111111-0000-4000-8000-000000000001"
PROVIDERS: dict[str, dict[str, Any]] = {
    "compute-1": {
        "inventories": {
            "MEMORY_MB": {"total": 32768, "reserved": 512},
            "VCPU": {"total": 16, "allocation_ratio": 4.0},
        },
        "traits": ["COMPUTE_NODE", "HW_CPU_X86_AVX2"],
        "aggregates": [RACK],
    },
    "compute-1_gpu0": {"parent": "compute-1", "inventories": {"VGPU": {"total": 8}}},
    "compute-2": {"inventories": {"VCPU": {"total": 16}}, "traits": ["COMPUTE_NODE"]},
    "pool-1": {
        "inventories": {"DISK_GB": {"total": 1000}},
        "traits": ["MISC_SHARES_VIA_AGGREGATE"],
        "aggregates": [RACK],
    },
}


def uuid_of(name: str) -> str:
    return f"c0ffee00-0000-4000-8000-{list(PROVIDERS).index(name) + 1:012}"


def load(api: ApiClient) -> None:
    """The cloud of the page."""
    for name, its in PROVIDERS.items():
        parent = uuid_of(its["parent"]) if "parent" in its else None
        body = {"name": name, "uuid": uuid_of(name), "parent_provider_uuid": parent}
        assert api.post("/resource_providers", body).status == 200
        generation = 0
        for what in ("inventories", "traits", "aggregates"):
            if what in its:
                path = f"/resource_providers/{uuid_of(name)}/{what}"
                answer = api.put(
                    path, {"resource_provider_generation": generation, what: its[what]}
                )
                assert answer.status == 200, answer.body
                generation = answer.json["resource_provider_generation"]
    claim = {
        "allocations": {
            uuid_of("compute-1"): {"resources": {"VCPU": 4, "MEMORY_MB": 8192}},
            uuid_of("compute-1_gpu0"): {"resources": {"VGPU": 2}},
            uuid_of("pool-1"): {"resources": {"DISK_GB": 100}},
        },
        "project_id": "shop",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert api.put(f"/allocations/{INSTANCE}", claim).status == 204


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """A server with the cloud of the page."""
    with LiveServer(f"sqlite:///{tmp_path}/page.db", tmp_path, workers=1) as server:
        load(server.client())
        monkeypatch.setenv("ROOST_URL", server.url)
        yield server


def examples(page: str) -> Iterator[tuple[str, str]]:
    """Each command of a page, and what it prints there."""
    for block in code_blocks(DOCS / page, "console"):
        for part in block.text.removeprefix("$ ").split("\n$ "):
            command, _, printed = part.partition("\n")
            yield command, printed.rstrip("\n")


def printed_by(command: str, url: str) -> str:
    outcome = roost(*shlex.split(command)[1:])
    # The port is another one each time, and the version another one in each release.
    text = outcome.shown.rstrip("\n").replace(url, "http://127.0.0.1:8778")
    return text.replace(f"Roost {__version__}", "Roost 0.1.0")


@pytest.mark.parametrize(("page", "least"), [("commands.md", 15), ("ask.md", 3)])
def test_each_example_prints_what_the_page_shows(cloud: LiveServer, page: str, least: int) -> None:
    found = list(examples(page))
    assert len(found) > least
    for command, printed in found:
        assert printed_by(command, cloud.url) == printed, command
