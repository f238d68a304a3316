"""Resilience of small random clouds against brute force, and the bounds of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.search.candidates.effort import no_pause
from roost.search.forest.forest import Forest
from roost.search.forest.rows import AllocationRows, column
from roost.search.forest.vocabulary import Vocabulary
from roost.search.resilience import resilience
from roost.search.resilience.resilience import LossOutcome, Resilience, find_resilience
from support.properties import many
from support.worlds.forests import CLASSES, Node, forest_of, rows_of

# Provider, class, amount.
Held = tuple[int, str, int]


@dataclass(frozen=True)
class Cloud:
    """Trees, the largest unit and the step of every inventory, and what each consumer holds."""

    trees: list[list[Node]]
    max_unit: int
    step: int
    consumers: list[list[Held]]

    @property
    def nodes(self) -> list[tuple[int, Node]]:
        return [(number, node) for number, tree in enumerate(self.trees) for node in tree]

    def forest(self) -> Forest:
        rows = rows_of(self.trees)
        inventories = rows.inventories
        ones = np.ones(len(inventories.total), np.int64)
        changed = replace(inventories, max_unit=ones * self.max_unit, step_size=ones * self.step)
        return Forest.of(replace(rows, inventories=changed), Vocabulary.of(CLASSES, {}))

    def rows(self) -> AllocationRows:
        return allocations(self.consumers)


def allocations(consumers: Sequence[Sequence[Held]]) -> AllocationRows:
    """The rows of these holdings; the id of a provider is its position, from 1."""
    held = [
        (provider + 1, CLASSES[name], amount, number)
        for number, its in enumerate(consumers)
        for provider, name, amount in its
    ]
    return AllocationRows(
        provider_ids=column([provider_id for provider_id, _, _, _ in held]),
        class_ids=column([class_id for _, class_id, _, _ in held]),
        used=column([amount for _, _, amount, _ in held]),
        consumers=column([consumer for _, _, _, consumer in held]),
    )


@st.composite
def clouds(draw: Any) -> Cloud:
    amounts = st.sampled_from([1, 2, 3, 4])
    offers = st.fixed_dictionaries({}, optional={"VCPU": amounts, "MEMORY_MB": amounts})
    children = st.lists(offers.map(lambda totals: Node(0, totals)), max_size=2)
    trees = draw(
        st.lists(
            st.tuples(amounts, children).map(lambda t: [Node(None, {"VCPU": t[0]}), *t[1]]),
            min_size=1,
            max_size=4,
        )
    )
    count = sum(map(len, trees))
    parts = st.tuples(
        st.integers(0, count - 1), st.sampled_from(["VCPU", "MEMORY_MB"]), st.sampled_from([1, 2])
    )
    consumers = draw(
        st.lists(st.lists(parts, min_size=1, max_size=3, unique_by=lambda p: p[:2]), max_size=5)
    )
    return Cloud(
        trees, draw(st.sampled_from([8, 2, 1])), draw(st.sampled_from([1, 1, 2])), consumers
    )


def survives(cloud: Cloud, lost: int) -> bool:
    """Whether what the consumers hold from a tree fits on the rest: by trying everything."""
    nodes = cloud.nodes
    free = {
        (provider, name): total
        for provider, (_, node) in enumerate(nodes)
        for name, total in node.totals.items()
    }
    for its in cloud.consumers:
        for provider, name, amount in its:
            if (provider, name) in free:
                free[provider, name] -= amount
    moving = []
    for its in cloud.consumers:
        parts: dict[int, dict[str, int]] = {}
        for provider, name, amount in its:
            if nodes[provider][0] == lost:
                parts.setdefault(provider, {})[name] = amount
        if parts:
            moving.append(list(parts.values()))
    return fits(cloud, lost, moving, free)


def fits(
    cloud: Cloud, lost: int, moving: list[list[dict[str, int]]], free: dict[tuple[int, str], int]
) -> bool:
    if not moving:
        return True
    parts, *rest = moving
    for tree in range(len(cloud.trees)):
        providers = [number for number, (its, _) in enumerate(cloud.nodes) if its == tree]
        for chosen in permutations(providers, len(parts)) if tree != lost else ():
            taken = [
                (provider, name, amount)
                for provider, part in zip(chosen, parts, strict=True)
                for name, amount in part.items()
            ]
            if all(
                amount <= min(free.get((provider, name), -1), cloud.max_unit)
                and amount % cloud.step == 0
                for provider, name, amount in taken
            ):
                left = dict(free)
                for provider, name, amount in taken:
                    left[provider, name] -= amount
                if fits(cloud, lost, rest, left):
                    return True
    return False


def check_against_brute_force(cloud: Cloud) -> None:
    found = find_resilience(cloud.forest(), cloud.rows(), no_pause)
    lost = {int(root.root_uuid) for root in found.roots}
    roots = [number for number, (_, node) in enumerate(cloud.nodes) if node.parent is None]
    expected = {root for tree, root in enumerate(roots) if not survives(cloud, tree)}
    assert found.exact
    assert lost == expected
    assert found.survives == len(roots) - len(expected)


@settings(max_examples=many(40))
@given(cloud=clouds())
def test_the_roots_that_must_not_be_lost_are_those_of_brute_force(cloud: Cloud) -> None:
    check_against_brute_force(cloud)


@settings(max_examples=many(25))
@given(cloud=clouds())
def test_the_search_alone_finds_the_same_as_with_the_quick_way(cloud: Cloud) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resilience, "_QUICK_TRIES", -1)
        patch.setattr(resilience, "_QUICK_UNITS", -1)
        check_against_brute_force(cloud)


def found_in(trees: list[list[Node]], consumers: list[list[Held]]) -> Resilience:
    return find_resilience(forest_of(trees), allocations(consumers), no_pause)


def host(cpus: int) -> list[Node]:
    return [Node(None, {"VCPU": cpus})]


def test_an_empty_cloud_survives() -> None:
    nothing = allocations([])
    forest = forest_of([host(1)]).with_trees(rows_of([host(1)]), [1])
    assert find_resilience(forest, nothing, no_pause).survives == 1


def test_allocations_of_providers_that_are_gone_do_not_count() -> None:
    assert found_in([host(4), host(4)], [[(17, "VCPU", 4)]]).survives == 2


def test_a_packing_that_first_fit_misses_is_found() -> None:
    # 6 and 4 go to the host with 10, 5 and 2 to the one with 7: first fit takes 6 and 5 first.
    consumers: list[list[Held]] = [[(0, "VCPU", amount)] for amount in (6, 5, 4, 2)]
    found = found_in([host(17), host(10), host(7)], consumers)
    assert found.survives == 3


def test_each_has_a_place_but_not_all_at_once() -> None:
    consumers: list[list[Held]] = [[(0, "VCPU", 3)] for _ in range(2)] + [[(0, "VCPU", 2)]]
    found = found_in([host(8), host(4), host(4)], consumers)
    assert [root.verdict.outcome for root in found.roots] == [LossOutcome.NO_ARRANGEMENT]


def test_a_search_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resilience, "UNITS_OF_TREE_MAX", 40)
    # Six hosts have 2 left beside the threes: the seventh two has no place.
    consumers: list[list[Held]] = [[(0, "VCPU", 3)] for _ in range(30)]
    consumers += [[(0, "VCPU", 2)] for _ in range(7)]
    trees = [host(104), *[host(5 + number % 3) for number in range(18)]]
    found = found_in(trees, consumers)
    assert not found.exact
    assert found.survives == len(trees) - 1


def test_a_root_with_thousands_of_consumers_needs_no_recursion() -> None:
    consumers: list[list[Held]] = [[(0, "VCPU", 1 + number % 3)] for number in range(3000)]
    found = found_in([host(6000), *[host(70) for _ in range(100)]], consumers)
    assert found.survives == 101
