"""Whole trees: the forest has all that providers have, the tables generations and owners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from roost.model.trees.owned import OwnedParts
from roost.search.forest.forest import Forest
from roost.search.trees import PlacedTrees, WholeTree
from roost.service.errors import Conflict, ErrorCode
from roost.store.rows import ownership, providers
from roost.store.statements import chunks

# Of how many providers one read takes the facts.
_FACTS_AT_ONCE = 2048
_NO_OWNERS: Mapping[str, OwnedParts] = {}
# Each attempt takes milliseconds. It fails if a provider meanwhile came to one of the trees.
_ATTEMPTS = 10


class StoredFacts(NamedTuple):
    """What only the tables have of a provider."""

    generation: int
    owners: Mapping[str, OwnedParts]


class ReadTrees(NamedTuple):
    """Whole trees by the ids that were asked for, and what the tables have of providers, by id."""

    trees: Mapping[int, WholeTree]
    facts: Mapping[int, StoredFacts]


def facts_of(connection: Connection, ids: Sequence[int]) -> dict[int, StoredFacts]:
    """The generation and the owners of each provider that exists, by id."""
    generations = providers.find_generations_of_ids(connection, ids)
    owners = ownership.owners_of(connection, ids)
    return {
        id_: StoredFacts(generation, owners.get(id_, _NO_OWNERS))
        for id_, generation in generations.items()
    }


def read_trees(
    ids: Sequence[int],
    fresh: Callable[[], Forest],
    read_facts: Callable[[Sequence[int]], Mapping[int, StoredFacts]],
) -> ReadTrees:
    """The trees of the providers with these ids, as far as they exist.

    The forest is younger than the generations. So a writer that sends a generation back has seen
    all that the generation counts, or is refused.
    """
    facts: dict[int, StoredFacts] = {}
    for _ in range(_ATTEMPTS):
        placed = PlacedTrees(fresh(), ids)
        missing = [id_ for id_ in placed.ids() if id_ not in facts]
        if not missing:
            return ReadTrees(placed.read(), facts)
        for some in chunks(missing, _FACTS_AT_ONCE):
            facts |= read_facts(some)
    raise Conflict(
        "Providers came to the trees while the server read them. Send the request again.",
        ErrorCode.CONCURRENT_UPDATE,
    )
