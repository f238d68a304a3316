"""Capacity: the names of a query are checked, then the forest is counted."""

from __future__ import annotations

from collections.abc import Callable

from roost.model.candidates import CandidateQuery
from roost.search.effort import no_pause
from roost.search.forest import Forest
from roost.search.packing.capacity import Capacity, find_capacity
from roost.service.candidates import check_names


def capacity_of(
    forest: Forest, query: CandidateQuery, pause: Callable[[], None] = no_pause
) -> Capacity:
    """How many more consumers with this query the forest holds; `Invalid` for an unknown name.

    The limit of the query does not count.
    """
    check_names(forest.vocabulary, query)
    return find_capacity(forest, query, pause=pause)
