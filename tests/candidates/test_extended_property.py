"""Random questions in the extended grammar: every answer is that of the oracle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from roost.api.application import Application
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.scenarios.answers import Found, read_answer, read_candidate, summary_faults
from support.scenarios.extended_requests import ExtendedRequest
from support.scenarios.extended_scenarios import ask_clouds
from support.scenarios.oracle import Candidate, World
from support.scenarios.preferences import in_order, preferred

pytestmark = [
    pytest.mark.hypothesis,
    pytest.mark.parametrize("kind", ["sqlite"], indirect=True),
]

# The number of clouds.
EXAMPLES = many(5)


def told(
    database: Database, tmp_path: Path, check: Callable[[ApiClient, World, ExtendedRequest], None]
) -> None:
    """Check every request to every cloud."""
    ask_clouds(database, settings_for(database, tmp_path), EXAMPLES, check)


def listed(api: ApiClient, path: str) -> tuple[list[Candidate], list[dict[str, int]], Found]:
    """The candidates in their order, the alternatives that each takes, and the whole answer."""
    answer = api.get(path)
    assert answer.status == 200, answer.body
    body = answer.json
    choices = [entry.pop("alternatives", {}) for entry in body["allocation_requests"]]
    candidates = [read_candidate(entry, 39) for entry in body["allocation_requests"]]
    return candidates, choices, read_answer(body, 39)


# Bounds that a small cloud never reaches otherwise.
SMALL_BOUNDS = {
    "roost.api.candidates.handler._CANDIDATES_AT_ONCE_MAX": 1,
    "roost.search.candidates.walks._PACKED_MIN": 1,
    "roost.search.forest.block_building.BLOCK_PROVIDERS": 4,
    "roost.search.forest.forest.BLOCK_PROVIDERS": 4,
    "roost.search.candidates.walks._KEPT_MAX": 1,
    "roost.search.candidates.scan._FIRST_TREES": 1,
    "roost.search.candidates.solving.solver._IDLE_MOVES_BEFORE_MEMORY": -1,
    "roost.search.candidates.solving.solver._UNITS_AT_ONCE": 0,
}


def test_every_answer_is_that_of_the_oracle(database: Database, tmp_path: Path) -> None:
    told(database, tmp_path, checked_in("first"))


@pytest.mark.parametrize("order", ["first", "pack", "random&seed=3"])
def test_every_answer_is_that_of_the_oracle_with_small_bounds(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    for bound, value in SMALL_BOUNDS.items():
        monkeypatch.setattr(bound, value)
    told(database, tmp_path, checked_in(order))


def checked_in(order: str) -> Callable[[ApiClient, World, ExtendedRequest], None]:
    """The check of an answer in this order: the candidates and their alternatives."""

    def check(api: ApiClient, world: World, request: ExtendedRequest) -> None:
        candidates, choices, found = listed(api, f"{request.path}&order={order}")
        left = len(candidates)
        begin = 0
        for part in preferred(world, request.query):
            wanted = len(part.candidates)
            if request.query.limit is not None:
                wanted = min(wanted, request.query.limit - begin)
            end = begin + wanted
            here = candidates[begin:end]
            assert len(here) == len(set(here)) == wanted
            assert set(here) <= part.candidates
            assert all(its == part.choices for its in choices[begin:end])
            begin, left = end, left - wanted
        assert not left
        assert not list(summary_faults(world, request.query, found))

    return check


def without_alternatives(request: ExtendedRequest) -> bool:
    return not any(group.alternatives for group in request.query.groups)


@pytest.mark.parametrize("order", ["pack", "spread"])
def test_orders_follow_from_their_definition(
    database: Database, tmp_path: Path, order: str
) -> None:
    def check(api: ApiClient, world: World, request: ExtendedRequest) -> None:
        if without_alternatives(request):
            candidates, *_ = listed(api, f"{request.path}&order={order}")
            assert candidates == in_order(world, request.query, order)[: request.query.limit]

    told(database, tmp_path, check)


def test_a_random_order_is_the_same_in_every_process(database: Database, tmp_path: Path) -> None:
    configuration = settings_for(database, tmp_path)

    def check(api: ApiClient, world: World, request: ExtendedRequest) -> None:
        if request.query.limit is not None:
            return
        path = f"{request.path}&order=random&seed=7"
        candidates, *_ = listed(api, path)
        # This application reads all providers at once, and has other blocks.
        process = application_client(Application(configuration, database))
        assert listed(process, path)[0] == candidates
        first, *_ = listed(api, f"{request.path}&order=first")
        assert sorted(map(hash, first)) == sorted(map(hash, candidates))

    told(database, tmp_path, check)
