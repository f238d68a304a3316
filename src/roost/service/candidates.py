"""Allocation candidates: the names of a query are checked, then the forest is searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from roost.model.candidates import CandidateQuery
from roost.search.candidate_order import CandidateOrder
from roost.search.candidates import FoundCandidates, find_candidates
from roost.search.forest import Forest
from roost.search.kept_work import KeptWork
from roost.search.vocabulary import Vocabulary
from roost.service.errors import Invalid


def list_candidates(
    forest: Forest,
    query: CandidateQuery,
    order: CandidateOrder,
    pause: Callable[[], None],
    kept_work: KeptWork | None = None,
) -> FoundCandidates:
    """The candidates for a query; raise `Invalid` if a name in it does not exist."""
    check_names(forest.vocabulary, query)
    return find_candidates(forest, query, order, pause=pause, kept_work=kept_work)


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
