"""One candidate of a search by itself: which provider gives what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roost.model.candidates import CandidateQuery
from roost.search.candidates.problem import Solution
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import FoundCandidates, find_candidates
from roost.search.candidates.variants import variants_of
from roost.search.forest.forest import Forest, ProviderRef, TreeRef


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """A candidate, with uuids and names as the API shows them."""

    root_uuid: str
    # By provider and resource class.
    allocations: Mapping[str, Mapping[str, int]]
    # The providers of each request group, by its suffix.
    mappings: Mapping[str, list[str]]

    @classmethod
    def of(cls, found: FoundCandidates, tree: TreeRef, solution: Solution) -> ChosenCandidate:
        """The candidate of a tree for a solution of the search."""
        allocations: dict[str, dict[str, int]] = {}
        mappings: dict[str, list[str]] = {}
        for slot, local in zip(found.slots, solution, strict=True):
            uuid = _uuid(found.forest, _provider(found, tree, local))
            together = mappings.setdefault(slot.suffix, [])
            if uuid not in together:
                together.append(uuid)
            for name, amount in slot.resources.items():
                amounts = allocations.setdefault(uuid, {})
                amounts[name] = amounts.get(name, 0) + amount
        root_uuid = found.forest.blocks[tree.block_number].root_uuid(tree.tree_number)
        return cls(root_uuid, allocations, mappings)


def choose_candidate(
    forest: Forest, query: CandidateQuery, order: CandidateOrder, pause: Callable[[], None]
) -> ChosenCandidate | None:
    """The best candidate by this order; `None` without candidates."""
    for variant in variants_of(query):
        found = find_candidates(forest, replace(variant.query, limit=1), order, pause=pause)
        for batch in found.batches:
            tree = TreeRef(batch.block_number, batch.tree_numbers[0])
            return ChosenCandidate.of(found, tree, batch.solution)
    return None


def _provider(found: FoundCandidates, tree: TreeRef, local: int) -> ProviderRef:
    if local < 0:
        return found.sharing_providers[~local].ref
    start = int(found.forest.blocks[tree.block_number].starts[tree.tree_number])
    return ProviderRef(tree.block_number, start + local)


def _uuid(forest: Forest, ref: ProviderRef) -> str:
    return forest.blocks[ref.block_number].uuids[ref.provider_index].decode()
