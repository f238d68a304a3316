"""What the oracle expects of alternatives and of orders, from their definitions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from support.scenarios.oracle import (
    Candidate,
    Query,
    Solution,
    World,
    candidate_of,
    candidates_under,
    combinations_under,
    passes,
)


@dataclass(frozen=True)
class Preferred:
    """The candidates of one combination of alternatives, in trees where no better one works."""

    choices: dict[str, int]
    candidates: frozenset[Candidate]


def preferred(world: World, query: Query) -> list[Preferred]:
    """The candidates of each combination, the one with the fewest steps first."""
    variants = sorted(
        product(*(range(1 + len(group.alternatives)) for group in query.groups)),
        key=lambda choices: (sum(choices), choices),
    )
    found: dict[tuple[int, ...], set[Candidate]] = {choices: set() for choices in variants}
    for root in world.roots():
        if not passes(world.providers[root], query):
            continue
        for choices in variants:
            under = set(candidates_under(world, variant(query, choices), root))
            found[choices] |= under
            if under:
                break
    return [
        Preferred(
            {
                group.suffix: choice
                for group, choice in zip(query.groups, choices, strict=True)
                if group.alternatives
            },
            frozenset(its),
        )
        for choices, its in found.items()
    ]


def variant(query: Query, choices: tuple[int, ...]) -> Query:
    """The query in which each group takes the resources of its choice."""
    groups = (
        replace(group, resources=(group.resources, *group.alternatives)[choice])
        for group, choice in zip(query.groups, choices, strict=True)
    )
    return replace(query, groups=tuple(groups))


def in_order(world: World, query: Query, order: str) -> list[Candidate]:
    """The candidates in the order `pack` or `spread`."""
    sign = -1 if order == "spread" else 1
    ranked = sorted(
        (
            sign * round(left_of_tree(world, query, root), 9),
            root,
            sign * round(left_of_givers(world, query, combination), 9),
            tuple(slot_providers(combination)),
            number,
            candidate_of(combination),
        )
        for root in world.roots()
        if passes(world.providers[root], query)
        for number, combination in enumerate(combinations_under(world, query, root))
    )
    return list(dict.fromkeys(candidate for *_, candidate in ranked))


def requested(query: Query) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for group in query.groups:
        amounts.update(group.resources)
    return amounts


def left_of_tree(world: World, query: Query, root: str) -> float:
    """What the tree has left, as if it gave everything: the average share of its classes."""
    amounts = requested(query)
    tree = [uuid for uuid in world.providers if world.root(uuid) == root]
    return sum(
        max(0, sum(free(world, uuid, name) for uuid in tree) - amount) / largest(world, name)
        for name, amount in amounts.items()
    ) / len(amounts)


def left_of_givers(world: World, query: Query, combination: tuple[Solution, ...]) -> float:
    """What the providers have left that give something."""
    givers = candidate_of(combination).allocations
    return sum(
        (free(world, uuid, name) - amount) / largest(world, name) for uuid, name, amount in givers
    ) / len(requested(query))


def free(world: World, uuid: str, name: str) -> int:
    provider = world.providers[uuid]
    inventory = provider.inventories.get(name)
    return 0 if inventory is None else max(0, inventory.capacity - provider.used.get(name, 0))


def largest(world: World, name: str) -> int:
    """The largest capacity of a class that a tree has."""
    capacities: Counter[str] = Counter()
    for uuid, provider in world.providers.items():
        if name in provider.inventories:
            capacities[world.root(uuid)] += provider.inventories[name].capacity
    return max(capacities.values(), default=0) or 1


def slot_providers(combination: tuple[Solution, ...]) -> Iterator[str]:
    """The provider of each suffixed group, and of each class of the unsuffixed group."""
    for solution in combination:
        if solution.suffix:
            yield from solution.providers
        else:
            yield from (uuid for uuid, _, _ in solution.takes)
