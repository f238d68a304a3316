"""Commands take trees up to the limit of levels, and name the provider that is beyond it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
import yaml

from roost.client.provider_tree import LEVELS_MAX
from support.roost_command import roost
from support.stubs.placement_stub import PlacementStub, Received, Reply

NAMES = [f"level-{level}" for level in range(1, LEVELS_MAX + 2)]


class ChainServer(PlacementStub):
    """A server with one tree, in which every provider but the last has one child."""

    def __init__(self, levels: int) -> None:
        super().__init__(otherwise=self._answer)
        self._levels = levels

    @staticmethod
    def uuid(level: int) -> str:
        return f"5a1cbbc0-7f0e-4b6c-9a53-{level:0>12}"

    def _answer(self, request: Received) -> Reply:
        if request.path == "/":
            return Reply(body={"versions": [{"max_version": "1.39"}]})
        if request.path.startswith("/roost/"):
            return Reply(404)
        if request.path.startswith("/resource_providers?"):
            levels = range(1, self._levels + 1)
            return Reply(body={"resource_providers": [self._body(level) for level in levels]})
        empty: dict[str, Any] = {"inventories": {}, "aggregates": [], "traits": []}
        return Reply(body={"resource_provider_generation": 0, **empty})

    def _body(self, level: int) -> dict[str, Any]:
        return {
            "uuid": self.uuid(level),
            "name": f"level-{level}",
            "generation": 0,
            "parent_provider_uuid": self.uuid(level - 1) if level > 1 else None,
            "root_provider_uuid": self.uuid(1),
        }


def nested_names(provider: dict[str, Any]) -> list[str]:
    names = [provider["name"]]
    while provider.get("children"):
        (provider,) = provider["children"]
        names.append(provider["name"])
    return names


def test_a_tree_with_as_many_levels_as_the_limit_is_shown_and_exported() -> None:
    with ChainServer(LEVELS_MAX) as server:
        drawn = roost("tree", "show", "level-1", "--url", server.url)
        as_json = roost("tree", "show", "level-1", "--json", "--url", server.url)
        exported = roost("tree", "export", "level-1", "--url", server.url)
    assert [line.lstrip("└─ ").split("  ")[0] for line in drawn.lines] == NAMES[:-1]
    assert nested_names(as_json.json[0]) == NAMES[:-1]
    assert nested_names(yaml.safe_load(exported.out)["providers"][0]) == NAMES[:-1]


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["export"]])
def test_a_tree_with_more_levels_is_refused_with_the_first_provider_beyond(
    command: list[str],
) -> None:
    with ChainServer(LEVELS_MAX + 1) as server:
        outcome = roost("tree", *command, "level-1", "--url", server.url)
    assert (outcome.status, outcome.out) == (1, "")
    assert f"level-{LEVELS_MAX + 1} ({ChainServer.uuid(LEVELS_MAX + 1)})" in outcome.err
    assert f"/resource_providers?in_tree={ChainServer.uuid(1)}" in outcome.err


@pytest.mark.parametrize("nested", [False, True])
def test_a_file_with_more_levels_is_refused_before_a_server_is_asked(nested: bool) -> None:
    with PlacementStub() as server:
        text = nested_file() if nested else flat_file()
        outcome = roost("tree", "diff", "-f", "-", "--owner", "me", "--url", server.url, stdin=text)
    assert (outcome.status, outcome.out, server.received) == (1, "", [])
    assert f"`level-{LEVELS_MAX + 1}` is on level {LEVELS_MAX + 1}" in outcome.err
    assert f"at most {LEVELS_MAX}" in outcome.err


def flat_file() -> str:
    children = [{"name": name, "parent": parent} for parent, name in pairwise(NAMES)]
    return json.dumps({"providers": [{"name": NAMES[0]}, *children]})


def nested_file() -> str:
    provider: dict[str, Any] = {"name": NAMES[-1]}
    for name in reversed(NAMES[:-1]):
        provider = {"name": name, "children": [provider]}
    return json.dumps({"providers": [provider]})
