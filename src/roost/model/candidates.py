"""The question behind allocation candidates: request groups and what holds between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roost.model.providers import AggregateFilter, TraitFilter

NO_TRAITS = TraitFilter()
NO_AGGREGATES = AggregateFilter()


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """What has to come together: from one provider, or, without suffix, from a whole tree.

    A suffixed group without resources asks for a provider with certain traits or aggregates.
    """

    suffix: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)
    traits: TraitFilter = NO_TRAITS
    aggregates: AggregateFilter = NO_AGGREGATES
    # The uuid of any provider of the tree, as the client spelt it.
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """All that `GET /allocation_candidates` can ask for."""

    # In the order in which the query names them first.
    groups: tuple[RequestGroup, ...]
    # Suffixed groups must be satisfied by different providers.
    isolate: bool = False
    # Of the providers of each of these sets of suffixes, one must be above all the others.
    same_subtrees: tuple[frozenset[str], ...] = ()
    root_required: TraitFilter = NO_TRAITS
    limit: int | None = None
    # Whether a candidate may take from several providers of one tree (since 1.29).
    nested: bool = True
