"""Random changes of random clouds: what a what-if answers is what the oracle finds afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from roost.api.application import Application
from roost.store import tables
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.scenarios.answers import faults, read_answer
from support.scenarios.cloud import Cloud, Holding, Release, Write, Writer
from support.scenarios.oracle import SHARING, Inventory, candidates
from support.scenarios.random_clouds import (
    CLASSES,
    TRAITS,
    Draw,
    choose,
    foundings,
    happens,
    inventory,
    some,
)
from support.scenarios.random_requests import requests
from support.scenarios.requests import Request
from support.scenarios.scenario import drawing, readable
from support.store.table_cleaning import clean_tables

pytestmark = [
    pytest.mark.hypothesis,
    pytest.mark.parametrize("kind", ["sqlite"], indirect=True),
]

# What-ifs of one cloud.
STORIES = 4

# Applies a change to the model; the second argument is what the service says of the change.
Model = Callable[[Cloud, Any], Cloud]


@dataclass(frozen=True)
class Imagined:
    """A change in JSON, and the same change of the model."""

    body: Any
    model: Model


@dataclass(frozen=True)
class Story:
    """Changes that are imagined, and questions."""

    changes: list[Imagined]
    questions: list[Request]

    def __repr__(self) -> str:
        changes = "\n".join(str(change.body) for change in self.changes)
        asked = "\n".join(str(question.parameters) for question in self.questions)
        return readable(f"changes:\n{changes}\nquestions:\n{asked}")


def subtree(cloud: Cloud, top: str) -> list[str]:
    world = cloud.world()
    return [uuid for uuid in cloud.providers if top in world.lineage(uuid)]


def draw_drain(draw: Draw, cloud: Cloud) -> Imagined:
    top = choose(draw, list(cloud.providers))

    def model(before: Cloud, _said: Any) -> Cloud:
        for uuid in subtree(before, top):
            drained = {
                name: replace(its, reserved=its.total)
                for name, its in before.providers[uuid].inventories.items()
            }
            before = before.with_provider(uuid, inventories=drained)
        return before

    return Imagined({"drain": top}, model)


def draw_remove(draw: Draw, cloud: Cloud) -> Imagined | None:
    top = choose(draw, list(cloud.providers))
    if len(subtree(cloud, top)) == len(cloud.providers):
        return None

    def model(before: Cloud, _said: Any) -> Cloud:
        gone = subtree(before, top)
        return replace(
            before,
            providers={uuid: its for uuid, its in before.providers.items() if uuid not in gone},
            holdings={
                consumer: {uuid: its for uuid, its in held.items() if uuid not in gone}
                for consumer, held in before.holdings.items()
            },
        )

    return Imagined({"remove": top}, model)


def draw_inventory(draw: Draw, cloud: Cloud) -> Imagined | None:
    uuid, name = choose(draw, list(cloud.providers)), choose(draw, CLASSES)
    if name not in cloud.named and name.startswith("CUSTOM_"):
        return None
    present = cloud.providers[uuid].inventories.get(name)
    new = vars(inventory(draw))
    fields = {key: new[key] for key in some(draw, list(new), 50)}
    if present is None or not fields:
        fields["total"] = new["total"]
    changed = Inventory(**{**vars(present or Inventory(1)), **fields})
    if changed.capacity < 0:
        return None

    def model(before: Cloud, _said: Any) -> Cloud:
        its = before.providers[uuid].inventories
        # An earlier drain may have changed what the fields are added to.
        known = vars(its[name]) if name in its else {}
        return before.with_provider(
            uuid, inventories={**its, name: Inventory(**{**known, **fields})}
        )

    return Imagined({"inventory": {"provider": uuid, "resource_class": name, **fields}}, model)


def draw_traits(draw: Draw, cloud: Cloud) -> Imagined | None:
    uuid = choose(draw, list(cloud.providers))
    known = [name for name in (*TRAITS, SHARING) if name in cloud.named or "CUSTOM" not in name]
    added = some(draw, known, 40)
    removed = [name for name in known if name not in added and happens(draw, 40)]
    if not added and not removed:
        return None

    def model(before: Cloud, _said: Any) -> Cloud:
        traits = (before.providers[uuid].traits | set(added)) - set(removed)
        return before.with_provider(uuid, traits=frozenset(traits))

    return Imagined({"traits": {"provider": uuid, "add": added, "remove": removed}}, model)


def draw_release(draw: Draw, cloud: Cloud) -> Imagined | None:
    if not cloud.holdings:
        return None
    consumer = choose(draw, sorted(cloud.holdings))
    return Imagined({"release": consumer}, lambda before, _said: Release(consumer).apply(before))


def draw_claim(draw: Draw, cloud: Cloud) -> Imagined | None:
    request = draw(requests(cloud))
    if request.mishap or request.version != "1.39":
        return None
    query = replace(request.query, limit=None)

    def model(before: Cloud, said: Any) -> Cloud:
        assert said["applied"] == bool(candidates(before.world(), query)), said
        if not said["applied"]:
            return before
        taken: Holding = {uuid: its["resources"] for uuid, its in said["allocations"].items()}
        consumer = f"imagined {len(before.holdings)}"
        return replace(before, holdings={**before.holdings, consumer: taken})

    return Imagined({"claim": {"query": query_string(request)}}, model)


KINDS = (draw_drain, draw_remove, draw_inventory, draw_traits, draw_release, draw_claim)


@st.composite
def clouds_with_stories(draw: Draw) -> tuple[list[Write], list[Story]]:
    """The writes that make a cloud, and several stories: a what-if leaves the cloud as it is."""
    made = draw(foundings())
    cloud = Cloud()
    for write in made:
        cloud = write.apply(cloud)
    return made, [draw_story(draw, cloud) for _ in range(STORIES)]


def draw_story(draw: Draw, cloud: Cloud) -> Story:
    changes: list[Imagined] = []
    # The model of the draw knows no claims: those take no provider away.
    now = cloud
    for _ in range(choose(draw, [1, 2, 3, 5])):
        change = choose(draw, KINDS)(draw, now)
        if change is not None:
            changes.append(change)
            if "claim" not in change.body:
                now = change.model(now, None)
    questions = [draw(requests(choose(draw, [now, cloud]))) for _ in range(4)]
    asked = [each for each in questions if not each.mishap and each.version == "1.39"]
    return Story(changes, asked)


def query_string(request: Request) -> str:
    """The query without its limit: under a limit, two searches may find different candidates."""
    pairs = [pair for pair in request.parameters if pair[0] != "limit"]
    return urlencode(pairs, safe="!:,")


def everything(connection: Connection) -> dict[str, list[Any]]:
    """All rows of all tables."""
    return {
        table.name: sorted(map(repr, connection.execute(select(table))))
        for table in tables.metadata.sorted_tables
    }


def check_story(story: Story, cloud: Cloud, api: ApiClient, database: Database) -> None:
    asked = [query_string(question) for question in story.questions] or ["resources=VCPU:1"]
    direct = [api.get(f"/allocation_candidates?{query}").json for query in asked]
    rows = database.read(everything)
    answer = api.post(
        "/roost/whatif",
        {
            "changes": [change.body for change in story.changes],
            "ask": [{"candidates": query} for query in asked],
        },
    )
    assert answer.status == 200, answer.body
    assert database.read(everything) == rows
    assert [api.get(f"/allocation_candidates?{query}").json for query in asked] == direct
    sides = answer.json["answers"]
    assert [side["before"] for side in sides] == [{**one, "truncated": False} for one in direct]
    for change, said in zip(story.changes, answer.json["changes"], strict=True):
        cloud = change.model(cloud, said)
    world = cloud.world()
    for question, side in zip(story.questions, sides, strict=False):
        query = replace(question.query, limit=None)
        right = candidates(world, query)
        side["after"].pop("truncated")
        wrong = "\n".join(faults(world, query, right, read_answer(side["after"], 39)))
        assert not wrong, readable(f"{wrong}\nafter: {drawing(world)}\n{question.parameters}")


def _sent(api: ApiClient, method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
    answer = api.at(version).request(method, path, body)
    return answer.status, answer.json if answer.body else None


def test_the_answers_after_are_those_of_the_changed_cloud(
    database: Database, tmp_path: Path
) -> None:
    service = settings_for(database, tmp_path)

    @settings(max_examples=many(5))
    @given(drawn=clouds_with_stories())
    def check(drawn: tuple[list[Write], list[Story]]) -> None:
        database.write_at_once(clean_tables)
        api = application_client(Application(service, database))
        cloud, writer = Cloud(), Writer(lambda *asked: _sent(api, *asked))
        for write in drawn[0]:
            cloud = write.apply(cloud)
            write.send(writer)
        for story in drawn[1]:
            check_story(story, cloud, api, database)

    check()
