"""Resilience: for each tree, whether the rest could take what it holds if it were lost.

Whether everything that a tree holds fits on the remaining trees at once is a packing problem.
The usual case is quick: the trees with most room take everything. Otherwise counting may prove that
it does not fit. Only then a search with backtracking decides, and it has a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from math import inf
from typing import TypeAlias

from roost.search.forest.forest import Forest
from roost.search.forest.rows import AllocationRows
from roost.search.resilience.holdings import (
    HoldingKind,
    HoldingPart,
    HoldingPlaces,
    SharingTies,
    holdings_by_tree,
    looks_of_trees,
)
from roost.search.resilience.tree_room import TreeRoom

# By tree: what is taken there, by provider and class.
_Taken: TypeAlias = dict[int, dict[tuple[int, int], int]]
# The provider of each part.
_Chosen: TypeAlias = tuple[int, ...]

# The work of all searches with backtracking together, and of one, in attempts at a provider. An
# attempt takes about a microsecond.
UNITS_MAX = 3_000_000
UNITS_OF_TREE_MAX = 50_000
# How many trees with most room are tried for a kind before anything is counted. The second number
# says what all these tries for one lost tree may cost.
_QUICK_TRIES = 12
_QUICK_UNITS = 20_000
# With more holdings than these, a search does not look back: each is one level of recursion.
_DEEPEST = 150


class LossOutcome(Enum):
    """Whether everything fits elsewhere, or why not."""

    FITS = auto()
    TOO_LITTLE = auto()
    """All remaining trees together have too little of a class."""
    NO_PLACE = auto()
    """A kind of holding fits nowhere, or not as often as needed."""
    NO_ARRANGEMENT = auto()
    """Each holding has places, but not all of them at once."""
    UNKNOWN = auto()
    """The search ended before it was complete."""


@dataclass(frozen=True, slots=True)
class LossVerdict:
    """The outcome for one lost tree, with the class or the kind that it is about."""

    outcome: LossOutcome
    class_id: int | None = None
    kind: HoldingKind | None = None


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


class OutOfUnits(Exception):
    """The search has no work left."""


class Evacuations:
    """All trees of a forest, each lost in turn."""

    def __init__(
        self,
        room: TreeRoom,
        ties: SharingTies,
        kinds: Iterable[HoldingKind],
        pause: Callable[[], None],
    ) -> None:
        self._room = room
        self._ties = ties
        self._pause = pause
        self._starts: list[int] = room.starts.tolist()
        self._totals = {id_: int(its.free_of_tree.sum()) for id_, its in room.classes.items()}
        # Large kinds first.
        ordered = sorted(kinds, key=self._size, reverse=True)
        self._ranks = {kind: rank for rank, kind in enumerate(ordered)}
        self._units_left = UNITS_MAX
        self._units = 0
        self._places = HoldingPlaces(room, ties, self._spend)
        self._looks: list[int] | None = None

    def verdict(self, lost: int, held: Sequence[HoldingKind]) -> LossVerdict:
        """Whether what a lost tree holds fits elsewhere."""
        short = self._short_class(lost, held)
        if short is not None:
            return LossVerdict(LossOutcome.TOO_LITTLE, class_id=short)
        ordered = sorted(held, key=self._ranks.__getitem__)
        try:
            self._units = _QUICK_UNITS
            if self._fits_at_once(lost, ordered, self._places.with_most, _QUICK_TRIES):
                return LossVerdict(LossOutcome.FITS)
        except OutOfUnits:
            pass
        self._units = begun = min(UNITS_OF_TREE_MAX, self._units_left)
        try:
            return self._searched(lost, ordered)
        except OutOfUnits:
            return LossVerdict(LossOutcome.UNKNOWN)
        finally:
            self._units_left -= begun - max(0, self._units)

    def _searched(self, lost: int, held: Sequence[HoldingKind]) -> LossVerdict:
        for kind, count in Counter(held).items():
            if self._places.has_none(kind):
                return LossVerdict(LossOutcome.NO_PLACE, kind=kind)
            places = self._places.count(kind)
            if int(places.sum()) - int(places[lost]) < count:
                return LossVerdict(LossOutcome.NO_PLACE, kind=kind)
        if self._fits_at_once(lost, held, self._places.fitting, inf):
            return LossVerdict(LossOutcome.FITS)
        if len(held) > _DEEPEST:
            return LossVerdict(LossOutcome.UNKNOWN)
        fits = self._pack(lost, held, 0, {}, 0)
        return LossVerdict(LossOutcome.FITS if fits else LossOutcome.NO_ARRANGEMENT)

    def _short_class(self, lost: int, held: Sequence[HoldingKind]) -> int | None:
        """A class of which all remaining trees together have too little."""
        needed: dict[int, int] = {}
        for kind in held:
            for class_id, amount in kind.amounts.items():
                needed[class_id] = needed.get(class_id, 0) + amount
        for class_id, amount in needed.items():
            its = self._room.classes.get(class_id)
            if its is None or self._totals[class_id] - int(its.free_of_tree[lost]) < amount:
                return class_id
        return None

    def _size(self, kind: HoldingKind) -> float:
        """The largest share that a kind takes of what all trees have left of a class."""
        return max(
            amount / max(1, self._totals.get(class_id, 0))
            for class_id, amount in kind.amounts.items()
        )

    def _fits_at_once(
        self,
        lost: int,
        held: Sequence[HoldingKind],
        trees_of: Callable[[HoldingKind], Sequence[int]],
        tries: float,
    ) -> bool:
        """Whether each holding in turn fits at the first place, without looking back.

        A tree that takes no further holding of a kind takes none later, either.
        """
        taken: _Taken = {}
        for kind, equal in groupby(held):
            trees, mask = trees_of(kind), self._ties.mask(kind.ties)
            position, left = 0, tries
            for _ in equal:
                while True:
                    if position == len(trees) or left < 0:
                        return False
                    tree = trees[position]
                    if tree != lost and (mask is None or mask[tree]):
                        places = next(self._placed(kind, tree, taken), None)
                        if places is not None:
                            _take(taken, tree, kind, places)
                            left = tries
                            break
                        left -= 1
                    position += 1
        return True

    def _pack(
        self, lost: int, held: Sequence[HoldingKind], number: int, taken: _Taken, begin: int
    ) -> bool:
        """Whether the holdings from this number on fit, by trying all trees for each.

        Equal kinds go to trees in ascending order. Of trees that look alike, one is tried.
        """
        if number == len(held):
            return True
        kind = held[number]
        is_repeated = number + 1 < len(held) and held[number + 1] is kind
        tried = set()
        trees = self._places.fitting(kind)
        for position in range(begin, len(trees)):
            tree = trees[position]
            if tree == lost:
                continue
            self._spend(1)
            look = self._look(tree), self._taken_look(tree, taken)
            if look in tried:
                continue
            tried.add(look)
            for places in self._placed(kind, tree, taken):
                _take(taken, tree, kind, places)
                if self._pack(lost, held, number + 1, taken, position if is_repeated else 0):
                    return True
                _take(taken, tree, kind, places, sign=-1)
        return False

    def _placed(self, kind: HoldingKind, tree: int, taken: _Taken) -> Iterator[_Chosen]:
        """All ways to put a holding into a tree of which something is taken."""
        start, end = self._starts[tree], self._starts[tree + 1]
        its = taken.get(tree, {})
        able = [
            [provider for provider in range(start, end) if self._takes(part, provider, its)]
            for part in kind.parts
        ]
        self._spend(len(kind.parts) * (end - start))
        if len(able) == 1:
            for provider in able[0]:
                yield (provider,)
        elif all(able):
            yield from self._distinct(kind.parts, able, ())

    def _distinct(
        self, parts: Sequence[HoldingPart], able: Sequence[Sequence[int]], chosen: _Chosen
    ) -> Iterator[_Chosen]:
        """The ways to give each part a provider of its own; equal parts in ascending order."""
        number = len(chosen)
        if number == len(parts):
            yield chosen
            return
        least = chosen[-1] if number and parts[number] == parts[number - 1] else -1
        for provider in able[number]:
            if provider > least and provider not in chosen:
                self._spend(1)
                yield from self._distinct(parts, able, (*chosen, provider))

    def _takes(self, part: HoldingPart, provider: int, taken: dict[tuple[int, int], int]) -> bool:
        classes = self._room.classes
        for class_id, amount in part:
            if not classes[class_id].takes(provider, amount, taken.get((provider, class_id), 0)):
                return False
        return True

    def _spend(self, units: int) -> None:
        self._units -= units
        if self._units < 0:
            raise OutOfUnits
        self._pause()

    def _look(self, tree: int) -> int:
        """A number that trees share if all their providers have the same room.

        With sharing providers, trees differ in more than room, so each has its own number.
        """
        if self._ties:
            return tree
        if self._looks is None:
            self._looks = looks_of_trees(self._room)
        return self._looks[tree]

    def _taken_look(self, tree: int, taken: _Taken) -> frozenset[tuple[int, int, int]]:
        start = self._starts[tree]
        return frozenset(
            (provider - start, class_id, used)
            for (provider, class_id), used in taken.get(tree, {}).items()
        )


def _take(taken: _Taken, tree: int, kind: HoldingKind, places: _Chosen, sign: int = 1) -> None:
    its = taken.setdefault(tree, {})
    for part, provider in zip(kind.parts, places, strict=True):
        for class_id, amount in part:
            used = its.get((provider, class_id), 0) + sign * amount
            if used:
                its[provider, class_id] = used
            else:
                its.pop((provider, class_id), None)
