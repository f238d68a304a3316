"""Random clouds change between requests, and every answer is that of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from roost.api.application import Application
from roost.configuration.settings import Settings
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.scenarios.answers import faults, read_answer
from support.scenarios.cloud import Ask, Cloud, Writer
from support.scenarios.oracle import Candidate, World, candidates
from support.scenarios.requests import Request
from support.scenarios.scenario import Scenario, drawing, query_text, readable, tell
from support.store.table_cleaning import clean_tables

pytestmark = pytest.mark.hypothesis

# The number of scenarios.
EXAMPLES = many(15)

# Bounds that a small cloud never reaches otherwise.
SMALL_BOUNDS = {
    "roost.api.candidates.body._CHUNK_BYTES": 64,
    "roost.api.candidates.template._STAMPED_MIN": 1,
    "roost.api.candidates.template._TEMPLATES_BYTES_MAX": 1,
    "roost.api.candidates.handler._CANDIDATES_AT_ONCE_MAX": 1,
    "roost.api.candidates.summaries._PROVIDERS_TOGETHER": 1,
    "roost.store.forest.reading.IDS_MAX": 2,
    "roost.replica.replica.REBUILD_PROVIDERS_MIN": 2,
    "roost.search.candidates.walks._PACKED_MIN": 1,
    "roost.search.forest.block_building.BLOCK_PROVIDERS": 4,
    "roost.search.candidates.walks._SOLUTIONS_HELD_MAX": 1,
    "roost.search.forest.forest.BLOCK_PROVIDERS": 4,
    "roost.search.forest.forest._FEW_IDS": 0,
    "roost.search.candidates.scan._FIRST_TREES": 1,
    "roost.search.candidates.solving.solver._IDLE_MOVES_BEFORE_MEMORY": -1,
    "roost.search.candidates.solving.solver._UNITS_AT_ONCE": 0,
    "roost.turns._LOOK_SECONDS": 0,
    "roost.turns._FREE_SECONDS": 0,
    "roost.turns._VERY_LARGE_SECONDS": 0,
    "roost.turns._SLICE_SECONDS": 0,
}


def asking(api: ApiClient) -> Ask:
    def ask(method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
        answer = api.at(version).request(method, path, body)
        return answer.status, answer.json if answer.body else None

    return ask


@dataclass(frozen=True)
class Asked:
    """A service that answers requests with at most `maximum` candidates."""

    api: ApiClient
    maximum: int | None = None
    name: str = "the service"


def play(scenario: Scenario, write_to: ApiClient, *read_from: Asked) -> None:
    """Play a scenario, and check each answer in it."""
    if scenario.early:
        for asked in read_from:
            # The service reads the empty tables now, and later only the changes.
            assert asked.api.get("/allocation_candidates?resources=VCPU:1").status == 200
    writer = Writer(asking(write_to))
    cloud = Cloud()
    for step in scenario.steps:
        if isinstance(step, Request):
            world = cloud.world()
            # A request with a mishap finds no candidate.
            right = set() if step.mishap else candidates(world, step.query)
            for asked in read_from:
                wrong = "\n".join(request_faults(asked, world, step, right))
                assert not wrong, explanation(world, step, f"{asked.name}: {wrong}")
        else:
            cloud = step.apply(cloud)
            step.send(writer)


def request_faults(
    asked: Asked, world: World, request: Request, right: set[Candidate]
) -> Iterator[str]:
    """The faults of the answer to a request, given all right candidates."""
    answer = asked.api.at(request.version).get(request.path)
    statuses = request.mishap.ours if request.mishap else (200,)
    if answer.status not in statuses:
        yield f"{answer.status} instead of {statuses}: {answer.body!r}"
    elif answer.status == 200:
        query = request.query
        bounds = [bound for bound in (query.limit, asked.maximum) if bound is not None]
        query = replace(query, limit=min(bounds, default=None))
        yield from faults(world, query, right, read_answer(answer.json, query.minor))


def explanation(world: World, request: Request, wrong: str) -> str:
    return readable(f"{wrong}\nworld: {drawing(world)}\nrequest: {query_text(request)}")


def tell_one_process(database: Database, service: Settings, examples: int) -> None:
    """Play scenarios on one application."""

    def check(scenario: Scenario) -> None:
        database.write_at_once(clean_tables)
        # An application need not notice that a test empties its tables, so a new one starts.
        api = application_client(Application(service, database))
        play(scenario, api, Asked(api))

    tell(examples, check)


def test_many_of_the_requests_have_candidates() -> None:
    """Two services that agree on empty answers only prove little."""
    found: list[bool] = []

    def count(scenario: Scenario) -> None:
        cloud = Cloud()
        for step in scenario.steps:
            if isinstance(step, Request):
                found.append(bool(candidates(cloud.world(), step.query)))
            else:
                cloud = step.apply(cloud)

    # One seed alone may have few.
    tell(2 * EXAMPLES, count)
    assert sum(found) > 0.4 * len(found)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_every_answer_is_that_of_the_oracle(database: Database, tmp_path: Path) -> None:
    tell_one_process(database, settings_for(database, tmp_path), EXAMPLES)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_every_answer_is_that_of_the_oracle_with_small_bounds(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound, value in SMALL_BOUNDS.items():
        monkeypatch.setattr(bound, value)
    tell_one_process(database, settings_for(database, tmp_path), EXAMPLES // 3)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_every_answer_keeps_to_the_configured_order_and_maximum(
    database: Database, tmp_path: Path
) -> None:
    """Services of all configurations play the same scenarios."""
    services = []
    for maximum, strategy, shuffled in product(
        (None, 3), ("depth-first", "breadth-first"), ("false", "true")
    ):
        configuration = (
            "[api]\nauth_strategy = noauth2\n"
            f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\nenforce_new_defaults = false\n"
            f"[placement]\nmax_allocation_candidates = {maximum or -1}\n"
            f"randomize_allocation_candidates = {shuffled}\n"
            f"allocation_candidates_generation_strategy = {strategy}\n"
        )
        service = settings_for(database, tmp_path, configuration)
        services.append((service, maximum, f"maximum {maximum}, {strategy}, shuffled {shuffled}"))

    def check(scenario: Scenario) -> None:
        database.write_at_once(clean_tables)
        configured = [
            Asked(application_client(Application(service, database)), maximum, name)
            for service, maximum, name in services
        ]
        play(scenario, configured[0].api, *configured)

    tell(EXAMPLES // 3, check)


def test_a_process_finds_the_writes_of_another_process(database: Database, tmp_path: Path) -> None:
    service = settings_for(database, tmp_path)

    def check(scenario: Scenario) -> None:
        database.write_at_once(clean_tables)
        writing = application_client(Application(service, database))
        with closing(Database(database.options)) as other:
            reading = application_client(Application(service, other))
            play(scenario, writing, Asked(reading))

    tell(EXAMPLES // 3, check)
