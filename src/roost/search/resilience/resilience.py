"""Resilience: for each tree, whether the rest could take what it holds if it were lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roost.search.forest.forest import Forest
from roost.search.forest.rows import AllocationRows
from roost.search.resilience.evacuation import Evacuations, LossOutcome, LossVerdict
from roost.search.resilience.holdings import SharingTies, holdings_by_tree
from roost.search.resilience.tree_room import TreeRoom


@dataclass(frozen=True, slots=True)
class LostRoot:
    """A root whose loss the rest would not survive, as far as the search knows."""

    root_uuid: str
    # How many consumers hold something from its tree.
    consumers: int
    verdict: LossVerdict


@dataclass(frozen=True, slots=True)
class Resilience:
    """How many roots may be lost, one at a time, and which may not: these by uuid."""

    survives: int
    roots: tuple[LostRoot, ...]

    @property
    def exact(self) -> bool:
        """Whether the search was complete for every root."""
        return all(root.verdict.outcome is not LossOutcome.UNKNOWN for root in self.roots)


def find_resilience(forest: Forest, rows: AllocationRows, pause: Callable[[], None]) -> Resilience:
    """The roots whose loss the rest would not survive. `rows` has the usage that counts."""
    room = TreeRoom(forest, rows)
    pause()
    ties = SharingTies(room)
    held = holdings_by_tree(room, rows, ties, pause)
    kinds = {kind: None for tree in held for kind in tree}
    evacuations = Evacuations(room, ties, kinds, pause)
    lost: list[LostRoot] = []
    for tree, its in enumerate(held):
        if its:
            pause()
            verdict = evacuations.verdict(tree, its)
            if verdict.outcome is not LossOutcome.FITS:
                lost.append(LostRoot(room.root_uuid(tree), len(its), verdict))
    lost.sort(key=lambda root: root.root_uuid)
    return Resilience(room.tree_count - len(lost), tuple(lost))
