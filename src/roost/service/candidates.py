"""Where would this fit? Allocation candidates from the forest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from roost.model.candidates import CandidateQuery
from roost.search.candidates import Found, Order, find_candidates
from roost.search.forest import Forest
from roost.search.rows import Vocabulary
from roost.service.errors import Invalid


def list_candidates(
    forest: Forest, query: CandidateQuery, order: Order, pause: Callable[[], None]
) -> Found:
    """The candidates for a query; unknown names in it are errors, whatever the forest holds."""
    check_names(forest.vocabulary, query)
    return find_candidates(forest, query, order, pause=pause)


def check_names(vocabulary: Vocabulary, query: CandidateQuery) -> None:
    """Raise `Invalid` for the first name, in the order of the query, that does not exist."""
    _check_traits(vocabulary, query.root_required.names)
    for group in query.groups:
        for name in group.resources:
            if name not in vocabulary.class_ids:
                raise Invalid(
                    f"Invalid resource class in resources parameter: No such resource class {name}."
                )
        _check_traits(vocabulary, group.traits.names)


def _check_traits(vocabulary: Vocabulary, names: Iterable[str]) -> None:
    for name in names:
        if name not in vocabulary.trait_ids:
            raise Invalid(f"No such trait(s): {name}.")
