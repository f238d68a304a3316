"""The overview of all roots: the names of a question are checked, then the forest is summed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import no_pause
from roost.search.capacity.finding import find_root_capacities
from roost.search.forest.forest import Forest
from roost.search.overview import (
    ByAggregate,
    RootOverview,
    TraitPrefix,
    find_overview,
)
from roost.service.errors import UnknownResourceClass, naming_place
from roost.service.questions.candidates import check_names
from roost.service.questions.roots import AskedRoots


@dataclass(frozen=True, slots=True)
class OverviewQuestion:
    """What a client wants to see of all roots."""

    resource_class: str | None = None
    fits: CandidateQuery | None = None
    grouping: TraitPrefix | ByAggregate | None = None
    roots: AskedRoots = field(default_factory=AskedRoots)


def overview_of(
    forest: Forest, asked: OverviewQuestion, pause: Callable[[], None] = no_pause
) -> RootOverview:
    """The overview; `Invalid` for an unknown name. The limit of the query does not count."""
    vocabulary = forest.vocabulary
    class_id = capacities = None
    if asked.resource_class is not None:
        class_id = vocabulary.class_ids.get(asked.resource_class)
        if class_id is None:
            raise UnknownResourceClass(asked.resource_class)
    wanted = asked.roots.filter(vocabulary)
    if asked.fits is not None:
        with naming_place("fits"):
            check_names(vocabulary, asked.fits)
        capacities = find_root_capacities(forest, asked.fits, pause=pause)
    return find_overview(forest, wanted, class_id, capacities, asked.grouping, pause=pause)
