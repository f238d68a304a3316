"""The capacity of random clouds is what the best sequence of claims reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from roost.api.candidates.query import parse_candidate_query
from roost.api.http.microversions import MAX_VERSION
from roost.search.capacity.capacity import Capacity
from roost.search.capacity.finding import find_capacity
from support.properties import first_seed, many
from support.scenarios.claim_sequences import best_sequence
from support.scenarios.cloud import Cloud
from support.scenarios.oracle import Inventory, Provider, World
from support.scenarios.random_clouds import Draw, foundings
from support.scenarios.random_requests import requests
from support.scenarios.requests import Request
from support.scenarios.scenario import drawing, query_text, readable
from support.worlds.oracle_forests import forest_of_world

pytestmark = pytest.mark.hypothesis

# After ten examples, Hypothesis mostly varies earlier ones. New seeds show more.
_EXAMPLES_PER_SEED = 10
_SEEDS = many(3)
# With more consumers, too many sequences would have to be tried.
_CONSUMERS_MAX = 5
_PLENTY = 10**6


@st.composite
def _cases(draw: Draw) -> tuple[Cloud, Request]:
    cloud = Cloud()
    for write in draw(foundings()):
        cloud = write.apply(cloud)
    return cloud, draw(requests(cloud))


def _check(case: tuple[Cloud, Request]) -> None:
    cloud, request = case
    world = cloud.world()
    if request.mishap or request.query.minor < MAX_VERSION.minor:
        return
    query = parse_candidate_query(list(request.parameters), MAX_VERSION, 100)
    capacity = find_capacity(forest_of_world(world), query)
    reached = best_sequence(world, replace(request.query, limit=None))
    about = readable(
        f"{capacity.fits} to {capacity.at_most} by {capacity.method}, sequences: {reached}\n"
        f"world: {drawing(world)}\nrequest: {query_text(request)}"
    )
    assert reached.count <= capacity.at_most, about
    if reached.complete:
        assert capacity.fits <= reached.count, about
    assert capacity.exact == (capacity.method != "bounds"), about
    asked = {name for group in request.query.groups for name in group.resources}
    assert (capacity.limited_by is None) == (capacity.fits == 0 or not asked), about
    if capacity.exact and reached.complete and 0 < reached.count <= _CONSUMERS_MAX:
        _check_limit(world, request, capacity, about)


def _check_limit(world: World, request: Request, capacity: Capacity, about: str) -> None:
    """More of each class that limits lets more in, and more of any other class does not."""
    limit = capacity.limited_by
    assert limit is not None
    holding = {root.uuid for root in capacity.roots()}
    query = replace(request.query, limit=None)
    about += f"\nlimit: {limit}"

    def lets_more_in(*names: str) -> bool | None:
        amount = sum(group.resources.get(name, 0) for group in query.groups for name in names)
        more = best_sequence(_with_more(world, holding, names, amount * capacity.fits), query)
        if more.count > capacity.fits:
            return True
        return False if more.complete else None

    def unknown(name: str) -> bool:
        """Whether only bounds are known of the capacity with more of a class."""
        more = _with_more(world, holding, [name], _PLENTY)
        parsed = parse_candidate_query(list(request.parameters), MAX_VERSION, 100)
        return not find_capacity(forest_of_world(more), parsed).exact

    asked = {name for group in query.groups for name in group.resources}
    alone = {name for name in asked if lets_more_in(name)}
    if limit.together:
        assert all(map(unknown, alone)), about
        assert lets_more_in(*limit.resource_classes) is not False, about
    else:
        listed = set(limit.resource_classes)
        assert all(lets_more_in(name) is not False for name in listed), about
        assert all(map(unknown, alone - listed)), about


def _with_more(world: World, holding: set[str], names: Sequence[str], amount: int) -> World:
    """The world with more of some classes on the trees that hold a consumer, and on pools."""

    def raised(inventory: Inventory) -> Inventory:
        room = inventory.capacity + amount
        return replace(inventory, total=room, reserved=0, allocation_ratio=1.0)

    providers = dict(world.providers)
    for uuid, provider in world.providers.items():
        if provider.sharing or world.root(uuid) in holding:
            changed = {
                name: raised(provider.inventories[name])
                for name in names
                if name in provider.inventories
            }
            inventories = {**provider.inventories, **changed}
            providers[uuid] = replace(provider, inventories=inventories)
    return World(providers)


def test_a_pool_serves_an_equal_group_outside_a_subtree() -> None:
    """Both groups ask the same, and only one of them is bound to a provider of the tree."""
    sharing, head = "MISC_SHARES_VIA_AGGREGATE", "HW_CPU_X86_AVX"
    rack = frozenset({"aaaaaaaa-0000-4000-8000-000000000001"})
    memory = {"MEMORY_MB": Inventory(4)}
    providers = {
        "00000000-0000-4000-8000-000000000001": Provider(
            None, memory, traits=frozenset({sharing}), aggregates=rack
        ),
        "00000000-0000-4000-8000-000000000002": Provider(None, traits=frozenset({head})),
        "00000000-0000-4000-8000-000000000003": Provider(
            "00000000-0000-4000-8000-000000000002", memory, aggregates=rack
        ),
    }
    query = parse_candidate_query(
        [
            ("resources_A", "MEMORY_MB:1"),
            ("resources_B", "MEMORY_MB:1"),
            ("required_H", head),
            ("same_subtree", "_B,_H"),
            ("group_policy", "isolate"),
        ],
        MAX_VERSION,
        100,
    )
    capacity = find_capacity(forest_of_world(World(providers)), query)
    assert 0 < capacity.fits <= 4 <= capacity.at_most


def test_the_bounds_of_a_capacity_enclose_the_best_sequence_of_claims() -> None:
    first = first_seed()
    for number in range(first, first + _SEEDS):
        check = given(_cases())(_check)
        chosen = settings(
            max_examples=_EXAMPLES_PER_SEED,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(number)(chosen(check))()
