"""Answers are right whatever point of a refresh meets a search of the older forest.

A refresh makes a new forest while requests still search the older one. What such a search keeps
must give the new forest its right answer. The tests stop a refresh at each point and search there:
once with new caches for the point, and once with the caches of the services.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from functools import partial
from itertools import count as count_from
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from roost.api.candidates.handler import list_allocation_candidates
from roost.api.candidates.kept_answers import KeptAnswers
from roost.api.candidates.summaries import SummaryCache
from roost.api.extensions.questions import capacity, explain
from roost.api.handlers import providers
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.services import Services
from roost.model.limits import Limits
from roost.replica import replica
from roost.replica.replica import Replica
from roost.search.candidates import kept_work, plan, sharing
from roost.search.candidates import search as candidates
from roost.search.forest import block, block_building, forest, set_table, vocabulary
from roost.search.forest import block as outline
from roost.search.forest import block as uuid_column
from roost.search.forest import rows as columns
from roost.search.forest.forest import Forest
from roost.search.forest.overlay import Overlay
from roost.search.forest.rows import ForestRows
from roost.search.forest.vocabulary import Vocabulary
from roost.service.errors import Invalid
from roost.store.database import Database
from roost.store.forest import columns as stored_columns
from roost.store.forest import reading
from roost.store.forest.reading import read_forest, read_vocabulary
from support.api_client import ApiClient, settings_for
from support.code_points import at_every_point, only_at
from support.worlds.notation import aggregate_uuid, long_name, provider_uuid, write_query
from support.worlds.world import build_world, replace

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

# The modules that put a forest together, all that take part in a refresh, and those of a search.
JOINING = (forest, set_table)
REFRESHING = (
    *(*JOINING, block, block_building, columns, outline, uuid_column, vocabulary),
    *(replica, reading, stored_columns),
)
SEARCHING = (candidates, kept_work, plan, set_table, sharing)

Show = Callable[[Services, Request], Response]
Change = Callable[[ApiClient], None]


def traits(name: str, *given: str) -> Change:
    """The provider gets these traits, and loses all other ones."""
    return lambda api: replace(api, name, "traits", [long_name(trait) for trait in given])


def aggregates(name: str, *joined: str) -> Change:
    """The provider joins these aggregates, and leaves all other ones."""
    return lambda api: replace(api, name, "aggregates", [aggregate_uuid(each) for each in joined])


def new_trait(provider: str, name: str) -> Change:
    """The provider gets a trait that the database has not had before."""

    def change(api: ApiClient) -> None:
        assert api.put(f"/traits/{name}").status == 201
        replace(api, provider, "traits", [name])

    return change


def new_class(provider: str, name: str) -> Change:
    """The provider gets inventory of a class that the database has not had before."""

    def change(api: ApiClient) -> None:
        assert api.put(f"/resource_classes/{name}").status == 201
        replace(api, provider, "inventories", {"VCPU": {"total": 8}, name: {"total": 8}})

    return change


@dataclass(frozen=True)
class Case:
    """A change of a world, and a question with the count of its candidates before and after."""

    world: str
    change: Change
    question: str
    # `None`: the question is refused, because it names what does not exist.
    before: int | None
    after: int


HOSTS = "A(VCPU 8, T1, agg Q), B(VCPU 8)"
POOL = "A(VCPU 8, agg Q), B(VCPU 8, agg R), *P(DISK 8, agg Q)"
NESTED = "A(VCPU 8, agg Q), N<A(MEM 8), *P(DISK 8, agg R)"

CASES = {
    "required": Case(HOSTS, traits("B", "T1", "T2"), "VCPU:1&required=T1", 1, 2),
    "required of a suffixed group": Case(
        HOSTS, traits("B", "T1", "T2"), "resources_X=VCPU:1&required_X=T1", 1, 2
    ),
    "forbidden": Case("A(VCPU 8)", traits("A", "T1"), "VCPU:1&required=!T1", 1, 0),
    "any of": Case(HOSTS, traits("B", "T2", "T3"), "VCPU:1&required=in:T1,T2", 1, 2),
    "root_required": Case(HOSTS, traits("B", "T1", "T2"), "VCPU:1&root_required=T1", 1, 2),
    "root_required, forbidden": Case(
        "A(VCPU 8)", traits("A", "T1"), "VCPU:1&root_required=!T1", 1, 0
    ),
    "member_of": Case(HOSTS, aggregates("B", "Q", "R"), "VCPU:1&member_of={Q}", 1, 2),
    "member_of, forbidden": Case("A(VCPU 8)", aggregates("A", "Q"), "VCPU:1&member_of=!{Q}", 1, 0),
    "member_of of a suffixed group": Case(
        HOSTS, aggregates("B", "Q", "R"), "resources_X=VCPU:1&member_of_X=in:{Q},{S}", 1, 2
    ),
    "a trait with a new name": Case(
        HOSTS, new_trait("B", "CUSTOM_NEW"), "VCPU:1&required=CUSTOM_NEW", None, 1
    ),
    "a new trait that is not asked for": Case(
        HOSTS, new_trait("A", "CUSTOM_NEW"), "VCPU:1&required=!T1", 1, 2
    ),
    "a class with a new name": Case(
        HOSTS, new_class("B", "CUSTOM_NEW"), "VCPU:1,CUSTOM_NEW:1", None, 1
    ),
    "a provider begins to share": Case(
        "A(VCPU 8, agg Q), P(DISK 8, agg Q, T1)",
        traits("P", "MISC_SHARES_VIA_AGGREGATE", "T1", "T2"),
        "VCPU:1,DISK:1",
        0,
        1,
    ),
    "a provider ends to share": Case(POOL, traits("P", "T1"), "VCPU:1,DISK:1", 1, 0),
    "a sharing provider joins an aggregate": Case(
        POOL, aggregates("P", "Q", "R"), "VCPU:1,DISK:1", 1, 2
    ),
    "a host joins the aggregate of a sharing provider": Case(
        POOL, aggregates("B", "Q", "S"), "VCPU:1,DISK:1", 1, 2
    ),
    "a host leaves the aggregate of a sharing provider": Case(
        POOL, aggregates("A", "S"), "VCPU:1,DISK:1", 1, 0
    ),
    "a child joins the aggregate of a sharing provider": Case(
        NESTED, aggregates("N", "R"), "VCPU:1,DISK:1", 0, 1
    ),
    "a sharing provider gets a trait": Case(
        POOL, traits("P", "MISC_SHARES_VIA_AGGREGATE", "T3"), "VCPU:1,DISK:1&required=T3", 0, 1
    ),
    "a sharing provider gets a forbidden trait": Case(
        POOL, traits("P", "MISC_SHARES_VIA_AGGREGATE", "T3"), "VCPU:1,DISK:1&required=!T3", 1, 0
    ),
    "a sharing provider gets smaller": Case(
        POOL,
        lambda api: replace(api, "P", "inventories", {"DISK_GB": {"total": 5}}),
        "VCPU:1&resources_X=DISK:3&resources_Y=DISK:3&group_policy=none",
        1,
        0,
    ),
}


class StandingReplica(Replica):
    """The replica as a request sees it that has its forest already."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest

    def current_with_position(self, patience_seconds: float | None = None) -> tuple[Forest, Any]:
        return self._forest, None


def answer(
    services: Services,
    forest: Forest,
    question: str,
    show: Show = list_allocation_candidates.handler,
) -> Any:
    """What a route answers from a forest: the body and why it is empty, or the refusal."""
    environ = {"REQUEST_METHOD": "GET", "QUERY_STRING": write_query(question)}
    request = Request(environ | {"HTTP_X_ROOST_EXPLAIN": "1"}, Limits())
    request.version = Microversion(1, 39)
    try:
        found = show(with_fields(services, replica=StandingReplica(forest)), request)
    except Invalid as refusal:
        return str(refusal)
    body = found.body if found.stream is None else b"".join(found.stream)
    return json.loads(body), dict(found.headers).get("X-Roost-Reason")


def with_own_caches(services: Services) -> Services:
    return with_fields(services, answers=KeptAnswers(), summaries=SummaryCache())


def count(found: Any) -> int | None:
    return None if isinstance(found, str) else len(found[0]["allocation_requests"])


@dataclass(frozen=True)
class Story:
    """A world before its change, and services that know it."""

    case: Case
    api: ApiClient
    services: Services

    def check_at_points(self, modules: Sequence[ModuleType], *, instructions: bool = False) -> None:
        """Refresh after the change, and search the older forest at each point."""
        services, question = self.services, self.case.question
        older = services.forest()
        self.case.change(self.api)
        at_points: list[tuple[Services, Any, Any]] = []

        def search() -> None:
            own = with_own_caches(services)
            at_points.append((own, answer(own, older, question), answer(services, older, question)))

        with at_every_point(modules, search, instructions=instructions):
            newer = services.forest()
        before, after = self.right_answers(older, newer)
        assert len(at_points) > 50
        for own, found, found_by_all in at_points:
            assert found == found_by_all == before
            assert answer(own, newer, question) == after
        assert answer(services, newer, question) == after

    def right_answers(self, older: Forest, newer: Forest) -> tuple[Any, Any]:
        """What searches from scratch find before and after the change."""
        before, after = (
            answer(with_own_caches(self.services), forest, self.case.question)
            for forest in (older, newer)
        )
        assert (count(before), count(after)) == (self.case.before, self.case.after)
        return before, after


@pytest.fixture(params=CASES)
def story(
    request: pytest.FixtureRequest, api: ApiClient, database: Database, tmp_path: Path
) -> Story:
    case = CASES[request.param]
    build_world(api, case.world)
    return Story(case, api, Services.on(settings_for(database, tmp_path), database))


some_stories = pytest.mark.parametrize(
    "story",
    ["required", "member_of, forbidden", "a child joins the aggregate of a sharing provider"],
    indirect=True,
)


def test_a_search_at_any_line_that_puts_a_forest_together(story: Story) -> None:
    story.check_at_points(JOINING)


@pytest.mark.slow
def test_a_search_at_any_instruction_that_puts_a_forest_together(story: Story) -> None:
    story.check_at_points(JOINING, instructions=True)


@pytest.mark.slow
def test_a_search_at_any_line_of_a_refresh(story: Story) -> None:
    story.check_at_points(REFRESHING)


@pytest.mark.slow
@some_stories
def test_other_questions_about_the_older_forest_at_any_line(story: Story) -> None:
    services = story.services
    older = services.forest()
    story.case.change(story.api)

    def answers() -> list[Any]:
        """Explanation, capacity, list of providers, and candidates after an imagined change."""
        shown = (
            explain.show_explanation,
            capacity.show_capacity,
            providers.list_resource_providers,
        )
        found = [answer(services, older, story.case.question, route.handler) for route in shown]
        overlay = Overlay(older)
        overlay.change_traits(provider_uuid("A"), [older.vocabulary.trait_ids["CUSTOM_T3"]], [])
        changed = answer(with_own_caches(services), overlay.forest, story.case.question)
        return [*found, changed]

    at_points: list[list[Any]] = []
    with at_every_point(JOINING, lambda: at_points.append(answers())):
        services.forest()
    before = answers()
    assert len(at_points) > 50
    assert all(found == before for found in at_points)


@pytest.mark.slow
@some_stories
def test_a_refresh_at_any_line_of_a_search(story: Story) -> None:
    services, question = story.services, story.case.question
    read = services.database.read
    rows, words = read(read_forest), read(read_vocabulary)
    story.case.change(story.api)
    new_rows, new_words = read(read_forest), read(read_vocabulary)
    before, after = story.right_answers(Forest.of(rows, words), Forest.of(new_rows, new_words))
    for point in count_from(0):
        older = Forest.of(rows, words)
        own = with_own_caches(services)
        newer: list[Forest] = []
        refresh = partial(_refresh, newer, older, new_rows, new_words)
        with at_every_point(SEARCHING, only_at(point, refresh)):
            assert answer(own, older, question) == before
        if not newer:
            break
        assert answer(own, newer[0], question) == after
    assert point > 50


def _refresh(newer: list[Forest], older: Forest, rows: ForestRows, words: Vocabulary) -> None:
    newer.append(older.with_vocabulary(words).with_trees(rows, ()))
