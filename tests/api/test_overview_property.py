"""Random clouds: an overview and an export have what the Placement API answers, added up."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from roost.api.application import Application
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.scenarios.cloud import Cloud, Writer
from support.scenarios.requests import Request
from support.scenarios.scenario import Scenario, drawing, readable, tell
from support.store.table_cleaning import clean_tables

pytestmark = pytest.mark.hypothesis

# The number of scenarios.
EXAMPLES = many(2)
AMOUNTS = ("total", "reserved", "used", "free")
SAMPLE = re.compile(
    r'openstack_placement_resource_(\w+){hostname="(.*)",resourcetype="(\w+)"} (.*)'
)


@dataclass
class Seen:
    """A provider, as the Placement API shows it."""

    uuid: str
    name: str
    root: str
    inventories: Mapping[str, Mapping[str, Any]]
    used: Mapping[str, int]
    traits: list[str]
    aggregates: list[str]

    def amounts(self, resource_class: str) -> dict[str, int]:
        """The amounts of a class, and its capacity."""
        inventory = self.inventories[resource_class]
        rest = inventory["total"] - inventory["reserved"]
        capacity, used = int(rest * inventory["allocation_ratio"]), self.used[resource_class]
        return {
            "total": inventory["total"],
            "reserved": inventory["reserved"],
            "used": used,
            "free": max(0, capacity - used),
            "capacity": capacity,
            "providers": 1,
        }


def seen(api: ApiClient) -> list[Seen]:
    found = []
    for provider in api.get("/resource_providers").json["resource_providers"]:
        path = f"/resource_providers/{provider['uuid']}"
        found.append(
            Seen(
                provider["uuid"],
                provider["name"],
                provider["root_provider_uuid"],
                api.get(f"{path}/inventories").json["inventories"],
                api.get(f"{path}/usages").json["usages"],
                api.get(f"{path}/traits").json["traits"],
                api.get(f"{path}/aggregates").json["aggregates"],
            )
        )
    return found


def added(providers: list[Seen], resource_class: str) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for provider in providers:
        if resource_class in provider.inventories:
            for name, amount in provider.amounts(resource_class).items():
                sums[name] += amount
    return sums


class NaiveOverview:
    """The right answers, one provider at a time."""

    def __init__(self, providers: list[Seen]) -> None:
        self.trees: dict[str, list[Seen]] = defaultdict(list)
        for provider in providers:
            self.trees[provider.root].append(provider)
        self.roots = {one.uuid: one for one in providers if one.uuid == one.root}

    def rows(self, chosen: list[str], resource_class: str, fits: Mapping[str, int]) -> list[Any]:
        return [
            [
                uuid,
                self.roots[uuid].name,
                *(added(self.trees[uuid], resource_class)[name] for name in AMOUNTS),
                fits.get(uuid, 0),
            ]
            for uuid in sorted(chosen)
        ]

    def totals(self, chosen: list[str]) -> dict[str, dict[str, int]]:
        providers = [provider for uuid in chosen for provider in self.trees[uuid]]
        names = {name for provider in providers for name in provider.inventories}
        return {name: dict(added(providers, name)) for name in names}

    def with_trait(self, trait: str) -> list[str]:
        return [
            uuid for uuid, tree in self.trees.items() if any(trait in its.traits for its in tree)
        ]

    def in_aggregate(self, aggregate: str) -> list[str]:
        return [
            uuid
            for uuid, tree in self.trees.items()
            if any(aggregate in its.aggregates for its in tree)
        ]

    def grouped(self, group_by: str) -> dict[str, str | None]:
        def value(root: Seen) -> str | None:
            if group_by == "aggregate":
                return min(root.aggregates, default=None)
            prefix = group_by.removeprefix("trait:")
            return min((one for one in root.traits if one.startswith(prefix)), default=None)

        return {uuid: value(root) for uuid, root in self.roots.items()}


def overview(api: ApiClient, **parameters: str) -> Any:
    answer = api.get(f"/roost/overview?{urlencode(parameters)}")
    assert answer.status == 200, answer.body
    return answer.json


def check_cloud(api: ApiClient, request: Request) -> None:
    """Compare overviews of every kind, and the export, with the naive ones."""
    providers = seen(api)
    naive = NaiveOverview(providers)
    query = urlencode(request.parameters, safe="!:,")
    capacities = api.get(f"/roost/capacity?{query}&by=root").json["roots"]
    fits = {root["root"]["uuid"]: root["fits"] for root in capacities}
    everything = sorted(naive.roots)
    for name in sorted({name for its in providers for name in its.inventories}):
        found = overview(api, resource_class=name, fits=query, group_by="aggregate")
        assert [row[:-1] for row in found["rows"]] == naive.rows(everything, name, fits)
        assert found["totals"] == naive.totals(everything)
        check_groups(found, naive.grouped("aggregate"), everything)
    for trait in sorted({trait for its in providers for trait in its.traits}):
        found = overview(api, trait=trait, fits=query, group_by=f"trait:{trait[:8]}")
        chosen = sorted(naive.with_trait(trait))
        assert [row[0] for row in found["rows"]] == chosen
        assert found["totals"] == naive.totals(chosen)
        check_groups(found, naive.grouped(f"trait:{trait[:8]}"), chosen)
    for aggregate in sorted({one for its in providers for one in its.aggregates}):
        found = overview(api, aggregate=aggregate)
        assert [row[0] for row in found["rows"]] == sorted(naive.in_aggregate(aggregate))
    check_export(api, providers)


def check_groups(found: Any, groups: Mapping[str, str | None], chosen: list[str]) -> None:
    """Check that groups have the sums of their rows."""
    assert [row[-1] for row in found["rows"]] == [groups[uuid] for uuid in chosen]
    members: dict[str | None, list[Any]] = defaultdict(list)
    for row in found["rows"]:
        members[row[-1]].append(row)
    assert {group["group"]: group["roots"] for group in found["groups"]} == {
        value: len(rows) for value, rows in members.items()
    }
    for group in found["groups"]:
        rows = members[group["group"]]
        assert group["fits"] == sum(row[6] for row in rows)
        for place, name in enumerate(AMOUNTS, 2):
            amounts = [row[place] for row in rows]
            assert group[name] == (None if None in amounts else sum(amounts))


def check_export(api: ApiClient, providers: list[Seen]) -> None:
    found = {
        (metric, host, kind): float(value)
        for metric, host, kind, value in SAMPLE.findall(api.get("/roost/exporter").body.decode())
    }
    assert found == {
        (metric, its.name, kind): value
        for its in providers
        for kind, inventory in its.inventories.items()
        for metric, value in {
            "total": inventory["total"],
            "reserved": inventory["reserved"],
            "usage": its.used[kind],
            "allocation_ratio": inventory["allocation_ratio"],
        }.items()
    }


def test_an_overview_is_what_the_placement_api_answers_added_up(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A small cloud has several blocks, too.
    for module in ("block_building", "forest"):
        monkeypatch.setattr(f"roost.search.forest.{module}.BLOCK_PROVIDERS", 4)
    checked = 0

    def check(scenario: Scenario) -> None:
        nonlocal checked
        database.write_at_once(clean_tables)
        api = application_client(Application(settings_for(database, tmp_path), database))
        writer = Writer(lambda *call: ask(api, *call))
        cloud = Cloud()
        for step in scenario.steps:
            if not isinstance(step, Request):
                cloud = step.apply(cloud)
                step.send(writer)
            elif not step.mishap:
                try:
                    check_cloud(api, step)
                except AssertionError as error:
                    raise AssertionError(readable(f"{error}\n{drawing(cloud.world())}")) from error
                checked += 1

    tell(EXAMPLES, check)
    assert checked


def ask(api: ApiClient, method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
    answer = api.at(version).request(method, path, body)
    return answer.status, answer.json if answer.body else None
