"""Random clouds, changed and listed in turns: a list has the providers that pass its filter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from roost.api.application import Application
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.scenarios.cloud import Cloud, Writer
from support.scenarios.oracle import Group, World, in_aggregates, traits_suit
from support.scenarios.requests import Parameter, Request
from support.scenarios.scenario import Scenario, drawing, readable, tell
from support.store.table_cleaning import clean_tables


def passes(world: World, group: Group, uuid: str) -> bool:
    """Whether the provider itself meets the conditions of a group."""
    provider = world.providers[uuid]
    return (
        all(provider.has_room(name, amount) for name, amount in group.resources.items())
        and traits_suit(group, provider.traits)
        and in_aggregates(group, provider)
        and not group.not_member_of & provider.aggregates
        and (group.in_tree is None or is_in_tree(world, uuid, group.in_tree))
    )


def is_in_tree(world: World, uuid: str, member: str) -> bool:
    return member in world.providers and world.root(uuid) == world.root(member)


def parameters(group: Group) -> Iterator[Parameter]:
    """A group as the query of a list."""
    if group.resources:
        amounts = (f"{name}:{amount}" for name, amount in group.resources.items())
        yield "resources", ",".join(amounts)
    for names in group.required:
        yield "required", "in:" + ",".join(sorted(names))
    for name in sorted(group.forbidden):
        yield "required", f"!{name}"
    for uuids in group.member_of:
        yield "member_of", "in:" + ",".join(sorted(uuids))
    if group.not_member_of:
        yield "member_of", "!in:" + ",".join(sorted(group.not_member_of))
    if group.in_tree is not None:
        yield "in_tree", group.in_tree


def found(api: ApiClient, *query: Parameter) -> set[str]:
    answer = api.get(f"/resource_providers?{urlencode(query, safe='!:,')}")
    assert answer.status == 200, answer.body
    uuids = [provider["uuid"] for provider in answer.json["resource_providers"]]
    assert len(uuids) == len(set(uuids))
    return set(uuids)


def check_lists(api: ApiClient, world: World, group: Group) -> None:
    query = tuple(parameters(group))
    expected = {uuid for uuid in world.providers if passes(world, group, uuid)}
    listed = found(api, *query)
    assert listed == expected, readable(f"{query}\n{drawing(world)}\n{listed} is not {expected}")
    for uuid in sorted(world.providers)[:2]:
        # The name of each provider is its uuid.
        for key in ("uuid", "name"):
            assert found(api, *query, (key, uuid)) == expected & {uuid}


def play(scenario: Scenario, api: ApiClient) -> None:
    def ask(method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
        answer = api.at(version).request(method, path, body)
        return answer.status, answer.json if answer.body else None

    writer = Writer(ask)
    cloud = Cloud()
    if scenario.early:
        assert not found(api, ("resources", "VCPU:1"))
    for step in scenario.steps:
        if not isinstance(step, Request):
            cloud = step.apply(cloud)
            step.send(writer)
        elif step.mishap is None:
            for group in step.query.groups:
                check_lists(api, cloud.world(), group)


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_every_list_has_the_providers_that_pass_its_filter(
    database: Database, tmp_path: Path
) -> None:
    settings = settings_for(database, tmp_path)

    def check(scenario: Scenario) -> None:
        database.write_at_once(clean_tables)
        play(scenario, application_client(Application(settings, database)))

    tell(many(5), check)
