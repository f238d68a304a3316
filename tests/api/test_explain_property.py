"""Random clouds and requests: every count of an explanation is that of the oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from roost.api.application import Application
from roost.api.candidates.handler import header_text
from roost.configuration.settings import Settings
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import draw_the_same_in_every_run, many
from support.scenarios.cloud import Cloud, Writer
from support.scenarios.extended_requests import ExtendedRequest
from support.scenarios.extended_scenarios import ask_clouds
from support.scenarios.naive_misses import failed_checks, is_feasible
from support.scenarios.oracle import NESTED, Query, World, candidates
from support.scenarios.requests import Request
from support.scenarios.scenario import Scenario, drawing, query_text, readable, tell
from support.scenarios.stage_oracle import stage_counts, variants_of
from support.store.table_cleaning import clean_tables

pytestmark = [
    pytest.mark.hypothesis,
    pytest.mark.parametrize("kind", ["sqlite"], indirect=True),
]

# The number of scenarios.
EXAMPLES = many(6)

# Bounds that a small cloud never reaches otherwise.
SMALL_BOUNDS = {
    "roost.search.forest.block_building.BLOCK_PROVIDERS": 4,
    "roost.search.forest.forest.BLOCK_PROVIDERS": 4,
    "roost.search.candidates.scan._FIRST_TREES": 1,
    "roost.search.candidates.solving.solver._UNITS_AT_ONCE": 0,
}


def check_explanation(
    api: ApiClient, world: World, request: Request, provider: str | None = None
) -> None:
    """Compare one explanation with the oracle: of the cloud, or of the tree of a provider."""
    parameters = [*request.parameters, ("misses", "0")]
    if provider is not None:
        parameters.append(("provider", provider))
    answer = api.get(f"/roost/explain?{urlencode(parameters, safe='!:,')}")
    assert answer.status == 200, readable(f"{answer.body!r}\n{query_text(request)}")
    found = answer.json
    # The route reads every query as 1.39 does.
    query = replace(request.query, minor=39)
    only_root = None if provider is None else world.root(provider)
    counts = stage_counts(world, query, only_root)
    suffixes = list(dict.fromkeys(group["group"] for group in found["groups"]))
    empty = counts.empty_stage(suffixes)
    right = {
        "groups": counts.groups,
        "trees": counts.trees,
        "feasible": counts.trees[-1] > 0,
        "reason": empty,
    }
    assert shape(found) == right, readable(
        f"world: {drawing(world)}\nrequest: {query_text(request)}\nprovider: {provider}"
    )
    if provider is None and not isinstance(request, ExtendedRequest):
        assert found["feasible"] == bool(candidates(world, query))
    if provider is None:
        check_header(api, request, found["reason"])


def check_header(api: ApiClient, request: Request, reason: Any) -> None:
    """The header of an empty answer has the sentence of the explanation, found without counting."""
    headers = {"X-Roost-Explain": "1"}
    answer = api.at(request.version).request("GET", request.path, headers=headers)
    assert answer.status == 200
    text = answer.headers.get("X-Roost-Reason")
    assert (text is None) == bool(answer.json["allocation_requests"])
    # An older version may have fewer candidates than the explanation, and another reason.
    if request.query.minor >= NESTED:
        assert text == (None if reason is None else header_text(reason["text"]))


def shape(found: Any) -> Any:
    """The counts and the reason of an answer, as the oracle has them."""
    reason = found["reason"]
    return {
        "groups": {
            (group["group"], group.get("alternative")): [
                (row["providers"], row["trees"]) for row in group["funnel"]
            ]
            for group in found["groups"]
        },
        "trees": [row["trees"] for row in found["trees"]],
        "feasible": found["feasible"],
        "reason": None if reason is None else (reason["stage"], reason["group"]),
    }


def check_scenarios(database: Database, service: Settings, examples: int) -> None:
    def check(scenario: Scenario) -> None:
        database.write_at_once(clean_tables)
        api = application_client(Application(service, database))
        writer = Writer(lambda *call: ask(api, *call))
        cloud = Cloud()
        for step in scenario.steps:
            if not isinstance(step, Request):
                cloud = step.apply(cloud)
                step.send(writer)
            elif not step.mishap:
                world = cloud.world()
                check_explanation(api, world, step)
                for provider in list(world.providers)[:2]:
                    check_explanation(api, world, step, provider)

    tell(examples, check)


def ask(api: ApiClient, method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
    answer = api.at(version).request(method, path, body)
    return answer.status, answer.json if answer.body else None


def test_every_count_is_that_of_the_oracle(database: Database, tmp_path: Path) -> None:
    check_scenarios(database, settings_for(database, tmp_path), EXAMPLES)


def test_every_count_is_that_of_the_oracle_with_small_blocks(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound, value in SMALL_BOUNDS.items():
        monkeypatch.setattr(bound, value)
    check_scenarios(database, settings_for(database, tmp_path), EXAMPLES)


# Questions that no version of the Placement API has.


def explained(api: ApiClient, request: ExtendedRequest, **own: str) -> Any:
    parameters = [*request.parameters, *own.items()]
    answer = api.get(f"/roost/explain?{urlencode(parameters, safe='!:,')}")
    assert answer.status == 200, answer.body
    return answer.json


def check_extended(api: ApiClient, world: World, request: ExtendedRequest) -> None:
    """Every count of an explanation in the extended grammar is that of the oracle."""
    check_explanation(api, world, request)
    for provider in list(world.providers)[:2]:
        check_explanation(api, world, request, provider)
    answer = api.get(request.path)
    found = explained(api, request, misses="0")["feasible"]
    assert found == bool(answer.json["allocation_requests"])


def test_every_count_in_the_extended_grammar_is_that_of_the_oracle(
    database: Database, tmp_path: Path
) -> None:
    ask_clouds(database, settings_for(database, tmp_path), EXAMPLES, check_extended)


def test_every_count_in_the_extended_grammar_is_that_of_the_oracle_with_small_blocks(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound, value in SMALL_BOUNDS.items():
        monkeypatch.setattr(bound, value)
    ask_clouds(database, settings_for(database, tmp_path), EXAMPLES, check_extended)


def is_void(world: World, query: Query) -> bool:
    """Whether no cloud could meet the query: it names a tree that is not there, or two trees."""
    for group in query.groups:
        if group.in_tree is not None and group.in_tree not in world.providers:
            return True
        if not (group.resources or group.required or group.member_of or group.in_subtree):
            return True
        if (
            group.resources
            and group.in_tree is not None
            and group.in_subtree is not None
            and world.root(group.in_tree) != world.root(group.in_subtree)
        ):
            return True
    return False


def fewest_failed(world: World, query: Query, root: str) -> int:
    return min(failed_checks(world, variant, root) for variant in variants_of(query))


def check_misses(api: ApiClient, world: World, request: ExtendedRequest) -> None:
    """The misses are all trees without candidates, by the checks that they fail."""
    query = request.query
    misses = explained(api, request, misses="100")["misses"]
    failed = {miss["root"]["uuid"]: miss["failed"] for miss in misses}
    assert list(failed.values()) == sorted(failed.values())
    if is_void(world, query):
        assert failed == {}
        return
    right = {
        root: fewest_failed(world, query, root)
        for root in world.roots()
        if not any(is_feasible(world, variant, root) for variant in variants_of(query))
    }
    # What groups fulfil together is checked where each group has a provider.
    assert {root: count if right[root] else 0 for root, count in failed.items()} == right
    assert all(failed.values())


def test_the_misses_of_the_extended_grammar_are_those_of_a_naive_count(
    database: Database, tmp_path: Path
) -> None:
    ask_clouds(database, settings_for(database, tmp_path), EXAMPLES, check_misses)


def test_every_hint_of_the_extended_grammar_has_candidates(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other clouds would have another share of requests with hints.
    draw_the_same_in_every_run(monkeypatch)
    given: list[bool] = []

    def check(api: ApiClient, world: World, request: ExtendedRequest) -> None:
        found = explained(api, request)
        if not found["feasible"]:
            given.append(bool(found["hints"]))
        for hint in found["hints"]:
            answer = api.get(f"/roost/candidates?{hint['query']}")
            assert answer.status == 200, (hint, answer.body)
            assert answer.json["allocation_requests"], hint
        for provider in list(world.providers)[:2]:
            for hint in explained(api, request, provider=provider)["hints"]:
                again = api.get(f"/roost/explain?{hint['query']}&provider={provider}&misses=0")
                assert again.json["feasible"], hint

    ask_clouds(database, settings_for(database, tmp_path), EXAMPLES, check)
    assert sum(given) > 0.3 * len(given)
