"""Capacity and fragmentation: the names of queries are checked, then the forest is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import no_pause
from roost.search.capacity.capacity import Capacity
from roost.search.capacity.finding import find_capacity
from roost.search.capacity.fragmentation import Fragmentation, find_fragmentation
from roost.search.forest.forest import Forest
from roost.service.errors import naming_place
from roost.service.questions.candidates import check_names


def capacity_of(
    forest: Forest, query: CandidateQuery, pause: Callable[[], None] = no_pause
) -> Capacity:
    """How many more consumers with this query the forest holds; `Invalid` for an unknown name.

    The limit of the query does not count.
    """
    check_names(forest.vocabulary, query)
    return find_capacity(forest, query, pause=pause)


def fragmentation_of(
    forest: Forest, queries: Sequence[CandidateQuery], pause: Callable[[], None] = no_pause
) -> Fragmentation:
    """What is free, and what of it each query can use; `Invalid` for an unknown name.

    A refusal names the query by its position. The limits of the queries do not count.
    """
    for position, query in enumerate(queries):
        with naming_place(f"ask[{position}]"):
            check_names(forest.vocabulary, query)
    return find_fragmentation(forest, queries, pause=pause)
