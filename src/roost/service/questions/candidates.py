"""Allocation candidates: the names of a query are checked, then the forest is searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain

from sqlalchemy import Connection

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.identifiers import is_uuid
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import FoundCandidates
from roost.search.candidates.variants import find_variants
from roost.search.forest.forest import Forest
from roost.search.forest.vocabulary import Vocabulary
from roost.service.errors import Invalid, NotFound
from roost.service.questions.provider_list import resolve_provider


def list_candidates(
    forest: Forest,
    query: CandidateQuery,
    order: CandidateOrder,
    pause: Callable[[], None],
    kept_work: KeptWork | None = None,
) -> list[FoundCandidates]:
    """The candidates for a query, of each of its variants; `Invalid` if it has an unknown name."""
    check_names(forest.vocabulary, query)
    return find_variants(forest, query, order, pause=pause, kept_work=kept_work)


def with_resolved_places(connection: Connection, query: CandidateQuery) -> CandidateQuery:
    """The query with uuids where `in_tree` and `in_subtree` have names.

    An `in_tree` with a uuid that does not exist stays: it has no candidates, as in every version.
    """
    return replace(query, groups=tuple(_resolved(connection, group) for group in query.groups))


def _resolved(connection: Connection, group: RequestGroup) -> RequestGroup:
    in_tree, in_subtree = group.in_tree, group.in_subtree
    if in_tree is not None:
        try:
            in_tree = resolve_provider(connection, in_tree).uuid
        except NotFound:
            if not is_uuid(in_tree):
                raise
    if in_subtree is not None:
        in_subtree = resolve_provider(connection, in_subtree).uuid
    return replace(group, in_tree=in_tree, in_subtree=in_subtree)


def check_names(vocabulary: Vocabulary, query: CandidateQuery) -> None:
    """Raise `Invalid` for the first name, in the order of the query, that does not exist."""
    _check_traits(vocabulary, query.root_required.names)
    for group in query.groups:
        for name in chain(group.resources, *group.alternatives):
            if name not in vocabulary.class_ids:
                raise Invalid(
                    f"Invalid resource class in resources parameter: No such resource class {name}."
                )
        _check_traits(vocabulary, group.traits.names)


def _check_traits(vocabulary: Vocabulary, names: Iterable[str]) -> None:
    for name in names:
        if name not in vocabulary.trait_ids:
            raise Invalid(f"No such trait(s): {name}.")
