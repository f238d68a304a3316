"""The overview of all roots: the names of a question are checked, then the forest is summed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roost.model.candidates import CandidateQuery
from roost.search.candidates.effort import no_pause
from roost.search.capacity.finding import find_root_capacities
from roost.search.forest.forest import Forest
from roost.search.overview import (
    ByAggregate,
    RootFilter,
    RootOverview,
    TraitPrefix,
    find_overview,
)
from roost.service.errors import Invalid, UnknownResourceClass, naming_place
from roost.service.questions.candidates import check_names


@dataclass(frozen=True, slots=True)
class OverviewQuestion:
    """What a client wants to see of all roots."""

    resource_class: str | None = None
    fits: CandidateQuery | None = None
    grouping: TraitPrefix | ByAggregate | None = None
    name: str | None = None
    trait: str | None = None
    aggregate: str | None = None


def overview_of(
    forest: Forest, asked: OverviewQuestion, pause: Callable[[], None] = no_pause
) -> RootOverview:
    """The overview; `Invalid` for an unknown name. The limit of the query does not count."""
    vocabulary = forest.vocabulary
    class_id = trait_id = capacities = None
    if asked.resource_class is not None:
        class_id = vocabulary.class_ids.get(asked.resource_class)
        if class_id is None:
            raise UnknownResourceClass(asked.resource_class)
    if asked.trait is not None:
        trait_id = vocabulary.trait_ids.get(asked.trait)
        if trait_id is None:
            raise Invalid(f"No such trait(s): {asked.trait}.")
    if asked.fits is not None:
        with naming_place("fits"):
            check_names(vocabulary, asked.fits)
        capacities = find_root_capacities(forest, asked.fits, pause=pause)
    wanted = RootFilter(asked.name, trait_id, asked.aggregate)
    return find_overview(forest, wanted, class_id, capacities, asked.grouping, pause=pause)
