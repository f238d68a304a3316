"""What a driver declares, without a server: `--dry-run --offline` and `tree diff --driver`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from roost.client.errors import ReshapeNeeded
from roost.client.provider_tree import ProviderTree
from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.transports.tampering import one_server

UUID = "5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11"
TREE = """
providers:
- name: host
  traits: [HW_CPU_X86_AVX]
  inventories: {VCPU: {total: 16, reserved: 2}}
  children:
  - {name: gpu, inventories: {VGPU: 8}}
"""
COMMANDS = {
    "agent": ["agent", "--dry-run", "--offline"],
    "tree diff": ["tree", "diff", "--offline"],
}


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection would fail, because the address is none."""
    monkeypatch.setenv("ROOST_URL", "nonsense://")


NovasReshapeNeeded = type("ReshapeNeeded", (Exception,), {})
"""A driver that Nova has too raises Nova's own exception."""


class EditingDriver:
    """Adds a card; it wants the allocations first."""

    asks_with: type[Exception] = ReshapeNeeded

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: object = None
    ) -> None:
        if allocations is None:
            raise self.asks_with
        provider_tree.update_inventory(nodename, {"VCPU": {"total": 4}})
        provider_tree.new_child("card", nodename)


@pytest.fixture(params=[ReshapeNeeded, NovasReshapeNeeded], ids=["roost", "nova"])
def editing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(EditingDriver, "asks_with", request.param)
    module = ModuleType("editing")
    vars(module)["Driver"] = EditingDriver
    monkeypatch.setitem(sys.modules, "editing", module)
    return ["--driver", "editing:Driver", "--name", "host"]


def offline(command: str, *arguments: str) -> Outcome:
    Path("tree.yaml").write_text(TREE)
    driver = ["--driver", "file", "--option", "path=tree.yaml", "--name", "host"]
    outcome = roost(*COMMANDS[command], *driver, *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    return outcome


@pytest.mark.parametrize("command", COMMANDS)
def test_a_driver_that_asks_for_a_reshape_twice_fails_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, editing: list[str], command: str
) -> None:
    def update(*_: object, **__: object) -> None:
        raise EditingDriver.asks_with("move them")

    monkeypatch.setattr(EditingDriver, "update_provider_tree", update)
    outcome = roost(*COMMANDS[command], *editing)
    assert outcome.status == 1
    assert "EditingDriver failed with ReshapeNeeded: move them" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tree_is_drawn(command: str) -> None:
    assert offline(command, "--uuid", UUID).lines == [
        f"host  {UUID}",
        "VCPU  ░░░░░░░░░░░░░░░░░░░░  0 of 14 (2 of 16 reserved)",
        "trait HW_CPU_X86_AVX",
        "└── gpu",
        "    VGPU  ░░░░░░░░░░░░░░░░░░░░  0 of 8",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tree_is_a_file_that_apply_takes(command: str) -> None:
    text = offline(command, "--output", "yaml").out
    assert yaml.safe_load(text) == {"owner": "agent", **yaml.safe_load(TREE)}
    assert json.loads(offline(command, "--json").out) == yaml.safe_load(text)
    assert json.loads(offline(command, "-o", "json").out) == yaml.safe_load(text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_driver_that_edits_gets_the_tree_of_a_new_host(command: str, editing: list[str]) -> None:
    outcome = roost(*COMMANDS[command], *editing, "--output", "yaml")
    assert outcome.status == 0
    assert yaml.safe_load(outcome.out) == {
        "providers": [{"name": "host", "inventories": {"VCPU": 4}, "children": [{"name": "card"}]}]
    }


def test_the_records_stay_untouched(state: Path) -> None:
    offline("agent")
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["agent", "--driver", "linux", "--offline"], 78, "add --dry-run"),
        (["agent", "--driver", "linux", "--output", "yaml"], 78, "--dry-run --offline"),
        (["tree", "diff"], 2, "Give either a tree file (-f FILE) or a driver"),
        (["tree", "diff", "-f", "x", "--driver", "linux"], 2, "Give either"),
        (["tree", "diff", "-f", "x", "--offline"], 2, "--offline belongs to --driver"),
        (["tree", "diff", "-f", "x", "--name", "y"], 2, "--name belongs to --driver"),
        (["tree", "diff", "--driver", "linux", "--prune"], 2, "--prune belongs to -f"),
        (["tree", "diff", "--driver", "linux", "--jobs", "2"], 2, "--jobs belongs to -f"),
        (["tree", "diff", "--driver", "linux", "-o", "yaml"], 2, "with --offline"),
        (["tree", "diff", "--driver", "linux"], 1, "nonsense://"),
        (["tree", "apply"], 2, "--file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_do_not_fit_together_are_refused(
    arguments: list[str], status: int, words: str
) -> None:
    outcome = roost(*arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert words in outcome.err


@one_server
def test_diff_compares_a_driver_with_the_server(live_providers: LiveProviders) -> None:
    host = live_providers.name("host")
    Path("tree.yaml").write_text(f"providers: [{{name: {host}, inventories: {{VCPU: 4}}}}]")
    driver = ["--driver", "file", "--option", "path=tree.yaml", "--name", host]
    driver += ["--uuid", live_providers.uuid("host")]
    before = roost("tree", "diff", *driver)
    assert before.status == 3
    assert before.lines[0] == f"{host}: would be created"
    assert not live_providers.exists("host")
    planned = roost("tree", "diff", *driver, "--json").json
    assert planned["owner"] == "agent"
    assert planned["trees"][0]["tree"] == host
    assert (planned["failures"], planned["not_begun"]) == ([], 0)
    assert roost("agent", *driver, "--once").status == 0
    after = roost("tree", "diff", *driver)
    assert (after.status, after.out, after.err) == (
        0,
        "",
        "0 changes would be made, as owner agent\n",
    )
