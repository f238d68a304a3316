"""The query for allocation candidates: request groups, and constraints between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roost.model.providers import AggregateFilter, TraitFilter

NO_TRAITS = TraitFilter()
NO_AGGREGATES = AggregateFilter()


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Resources, traits and aggregates that one provider must have.

    The group without a suffix may have several providers of one tree. A suffixed group without
    resources asks for a provider with certain traits or aggregates.
    """

    suffix: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)
    traits: TraitFilter = NO_TRAITS
    aggregates: AggregateFilter = NO_AGGREGATES
    # The uuid of any provider of the tree, in the client's spelling.
    in_tree: str | None = None
    # The uuid of a provider: the group takes from this one or from providers below it.
    in_subtree: str | None = None
    # Resources to take instead, where those before them find nothing; in order of preference.
    alternatives: tuple[Mapping[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """All that `GET /allocation_candidates` can ask for, and `GET /roost/candidates` besides."""

    # In the order in which the query names the groups first.
    groups: tuple[RequestGroup, ...]
    # No two suffixed groups may have the same provider.
    isolate: bool = False
    # Each is a set of suffixes. No two of these groups may have the same provider.
    isolated_sets: tuple[frozenset[str], ...] = ()
    # Each is a set of suffixes. Of the providers of these groups, one must be an ancestor of all
    # the rest.
    same_subtrees: tuple[frozenset[str], ...] = ()
    root_required: TraitFilter = NO_TRAITS
    limit: int | None = None
    # Whether a candidate may take from several providers of one tree (since 1.29).
    nested: bool = True
