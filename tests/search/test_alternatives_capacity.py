"""The capacity of a query with alternatives: its bounds enclose what sequences of claims reach."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from roost.api.candidates.query import parse_candidate_query
from roost.api.http.microversions import MAX_VERSION
from roost.search.capacity.finding import find_capacity
from support.properties import many
from support.scenarios.claim_sequences import after_claim
from support.scenarios.cloud import Write
from support.scenarios.extended_requests import ExtendedRequest
from support.scenarios.extended_scenarios import clouds
from support.scenarios.oracle import Query, World
from support.scenarios.preferences import preferred
from support.scenarios.scenario import drawing, query_text, readable
from support.worlds.oracle_forests import forest_of_world
from support.worlds.oracle_worlds import oracle_world
from support.worlds.queries import query_of

# More states than these are too many for an everyday run.
STATES_MAX = 60


def reached(world: World, query: Query) -> tuple[int, bool]:
    """The most claims in a row that take what the query prefers; whether all rows were tried."""
    level, count, seen = [world], 0, 0
    while True:
        following: dict[str, World] = {}
        for before in level:
            for part in preferred(before, query):
                for candidate in part.candidates:
                    after = after_claim(before, candidate)
                    following[repr(sorted(after.providers.items(), key=str))] = after
        if not following:
            return count, True
        count += 1
        seen += len(following)
        if seen > STATES_MAX:
            return count, False
        level = list(following.values())


@pytest.mark.hypothesis
def test_the_bounds_enclose_the_best_sequence_of_claims() -> None:
    @settings(
        max_examples=many(25),
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(clouds())
    def check(made: tuple[list[Write], World, list[ExtendedRequest]]) -> None:
        _, world, asked = made
        forest = forest_of_world(world)
        for request in asked:
            query = parse_candidate_query(list(request.parameters), MAX_VERSION, 100, extended=True)
            capacity = find_capacity(forest, query)
            count, complete = reached(world, request.query)
            about = readable(
                f"{capacity.fits} to {capacity.at_most}, sequences: {count} {complete}\n"
                f"world: {drawing(world)}\nrequest: {query_text(request)}"
            )
            assert count <= capacity.at_most, about
            if complete:
                assert capacity.fits <= count, about
            assert capacity.exact == (capacity.method != "bounds"), about

    check()


@pytest.mark.parametrize(
    ("world", "query", "fits", "at_most"),
    [
        # Each host has what one of the alternatives asks for.
        ("H1(GOLD 3) H2(VCPU 8)", "resources_X=GOLD:1&or_resources_X=VCPU:4", 5, 5),
        # A host that has both: claims take the first alternative first.
        ("H1(GOLD 3, VCPU 8)", "resources_X=GOLD:1&or_resources_X=VCPU:4", 3, 5),
        ("H1(GOLD 3)", "resources_X=DISK:1&or_resources_X=GOLD:1", 3, 3),
        ("H1(GOLD 3)", "resources_X=DISK:1&or_resources_X=VCPU:1", 0, 0),
    ],
)
def test_every_consumer_takes_one_alternative(
    world: str, query: str, fits: int, at_most: int
) -> None:
    capacity = find_capacity(forest_of_world(oracle_world(world)), query_of(query))
    assert (capacity.fits, capacity.at_most) == (fits, at_most)
