"""The best sequence of claims, found by trying sequences. Shares no code with the service."""

from __future__ import annotations

from dataclasses import dataclass, replace

from support.scenarios.oracle import Candidate, Query, Take, World, candidates


@dataclass(frozen=True)
class Reached:
    """The largest number of consumers that the tried sequences reach."""

    count: int
    # Whether all sequences were tried.
    complete: bool


def best_sequence(world: World, query: Query, states_max: int = 4000) -> Reached:
    """Claim candidates of one query until none fits, in all orders, up to a number of states.

    Claims only take, so every candidate of a later moment is one of the beginning.
    """
    takes = sorted({candidate.allocations for candidate in candidates(world, query)}, key=_size)
    takes = [each for place, each in enumerate(takes) if not _is_wasteful(each, takes[:place])]
    keys = sorted({(uuid, name) for each in takes for uuid, name, _ in each})
    vectors = [
        tuple(sum(amount for uuid, name, amount in each if (uuid, name) == key) for key in keys)
        for each in takes
    ]
    left = tuple(
        world.providers[uuid].inventories[name].capacity - world.providers[uuid].used.get(name, 0)
        for uuid, name in keys
    )
    level = {left}
    seen, count = 1, 0
    while True:
        following = {
            after
            for before in level
            for vector in vectors
            if min(after := tuple(map(int.__sub__, before, vector)), default=0) >= 0
        }
        if not following:
            return Reached(count, complete=True)
        count += 1
        seen += len(following)
        if seen > states_max:
            # A few of the states lead on; the rest is left out.
            return Reached(count + _greedy(sorted(following)[0], vectors), complete=False)
        level = following


def after_claim(world: World, candidate: Candidate) -> World:
    """The world after a claim of this candidate."""
    providers = dict(world.providers)
    for uuid, name, amount in candidate.allocations:
        used = {**providers[uuid].used, name: providers[uuid].used.get(name, 0) + amount}
        providers[uuid] = replace(providers[uuid], used=used)
    return World(providers)


def _size(takes: frozenset[Take]) -> int:
    return sum(amount for _, _, amount in takes)


def _is_wasteful(takes: frozenset[Take], smaller: list[frozenset[Take]]) -> bool:
    amounts = {(uuid, name): amount for uuid, name, amount in takes}
    return any(
        all(amounts.get((uuid, name), 0) >= amount for uuid, name, amount in each)
        for each in smaller
    )


def _greedy(left: tuple[int, ...], vectors: list[tuple[int, ...]]) -> int:
    count = 0
    for vector in vectors:
        while min(after := tuple(map(int.__sub__, left, vector)), default=0) >= 0:
            left, count = after, count + 1
    return count
