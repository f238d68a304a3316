"""Edits of a query for allocation candidates: each returns another query. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.providers import TraitFilter


def group_of(query: CandidateQuery, suffix: str) -> RequestGroup:
    """The group with this suffix, which the query has."""
    return next(group for group in query.groups if group.suffix == suffix)


def trait_choices_of(traits: TraitFilter) -> list[tuple[str, ...]]:
    """Every required trait, and every set of which one suffices."""
    return [*((name,) for name in traits.required), *traits.any_of]


def without_group(query: CandidateQuery, suffix: str) -> CandidateQuery:
    """The query without a group."""
    return replace(query, groups=tuple(group for group in query.groups if group.suffix != suffix))


def with_amount(
    query: CandidateQuery, suffix: str, name: str, amount: int | None
) -> CandidateQuery:
    """The query with another amount of a class in a group; `None`: with none of it."""

    def edit(group: RequestGroup) -> RequestGroup:
        resources = {key: value for key, value in group.resources.items() if key != name}
        if amount is not None:
            # The class keeps its place.
            resources = {**group.resources, name: amount}
        return replace(group, resources=resources)

    return edited(query, suffix, edit)


def without_required(query: CandidateQuery, suffix: str, names: tuple[str, ...]) -> CandidateQuery:
    """The query without a trait choice of a group."""

    def edit(group: RequestGroup) -> RequestGroup:
        return replace(group, traits=without_choice(group.traits, names))

    return edited(query, suffix, edit)


def with_root_trait(
    query: CandidateQuery, suffix: str, names: tuple[str, ...], name: str
) -> CandidateQuery:
    """The query that requires a trait of the root in place of a trait choice of a group."""
    traits = query.root_required
    return replace(
        without_required(query, suffix, names),
        root_required=replace(traits, required=(*traits.required, name)),
    )


def without_same_subtree(query: CandidateQuery, suffixes: frozenset[str]) -> CandidateQuery:
    """The query without one `same_subtree`."""
    return replace(
        query, same_subtrees=tuple(its for its in query.same_subtrees if its != suffixes)
    )


def without_policy(query: CandidateQuery) -> CandidateQuery:
    """The query whose groups may have the same provider, unless a set isolates them."""
    return replace(query, isolate=False)


def without_isolated_set(query: CandidateQuery, suffixes: frozenset[str]) -> CandidateQuery:
    """The query without one `isolate`."""
    return replace(
        query, isolated_sets=tuple(its for its in query.isolated_sets if its != suffixes)
    )


def tidied(query: CandidateQuery) -> CandidateQuery | None:
    """The query without empty groups and what names them; `None` if the API refuses the rest."""
    groups = tuple(group for group in query.groups if group != RequestGroup(group.suffix))
    suffixes = {group.suffix for group in groups}
    named = (subtree & suffixes for subtree in query.same_subtrees)
    same_subtrees = tuple(subtree for subtree in named if subtree)
    kept_apart = (isolated & suffixes for isolated in query.isolated_sets)
    bound = frozenset[str]().union(*same_subtrees)
    bare = [group for group in groups if not group.resources]
    # Some group asks for resources, and each group that does not is in a same_subtree.
    if len(bare) == len(groups) or any(group.suffix not in bound for group in bare):
        return None
    return replace(
        query,
        groups=groups,
        same_subtrees=same_subtrees,
        isolated_sets=tuple(isolated for isolated in kept_apart if len(isolated) > 1),
    )


def edited(
    query: CandidateQuery, suffix: str, edit: Callable[[RequestGroup], RequestGroup]
) -> CandidateQuery:
    """The query with another group in place of the one with this suffix."""
    return replace(
        query,
        groups=tuple(edit(group) if group.suffix == suffix else group for group in query.groups),
    )


def without_choice(traits: TraitFilter, names: tuple[str, ...]) -> TraitFilter:
    """The traits without a choice."""
    return replace(
        traits,
        required=tuple(name for name in traits.required if (name,) != names),
        any_of=tuple(choice for choice in traits.any_of if choice != names),
    )
