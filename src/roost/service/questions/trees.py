"""Whole trees: the forest has all that providers have, and the tables have the generations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from roost.search.forest.forest import Forest
from roost.search.trees import PlacedTrees, WholeTree
from roost.service.errors import Conflict, ErrorCode
from roost.store.rows import providers
from roost.store.statements import chunks

# How many generations one read takes.
_GENERATIONS_AT_ONCE = 2048
# Each attempt takes milliseconds. It fails if a provider meanwhile came to one of the trees.
_ATTEMPTS = 10


class ReadTrees(NamedTuple):
    """Whole trees by the ids that were asked for, and the generations of providers by id."""

    trees: Mapping[int, WholeTree]
    generations: Mapping[int, int]


def generations_of(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """The generation of each provider that exists, by id."""
    return providers.find_generations_of_ids(connection, ids)


def read_trees(
    ids: Sequence[int],
    fresh: Callable[[], Forest],
    read_generations: Callable[[Sequence[int]], Mapping[int, int]],
) -> ReadTrees:
    """The trees of the providers with these ids, as far as they exist.

    The forest is younger than the generations. So a writer that sends a generation back has seen
    all that the generation counts, or is refused.
    """
    generations: dict[int, int] = {}
    for _ in range(_ATTEMPTS):
        placed = PlacedTrees(fresh(), ids)
        missing = [id_ for id_ in placed.ids() if id_ not in generations]
        if not missing:
            return ReadTrees(placed.read(), generations)
        for some in chunks(missing, _GENERATIONS_AT_ONCE):
            generations |= read_generations(some)
    raise Conflict(
        "Providers came to the trees while the server read them. Send the request again.",
        ErrorCode.CONCURRENT_UPDATE,
    )
