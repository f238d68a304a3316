"""Hints: queries close to one without candidates, each of which has a candidate.

Every hint begins with a tree that comes near: a few changes mend all that the tree lacks. The
search itself checks that the tree then has a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from roost.model.candidate_query_edits import tidied, trait_choices_of
from roost.model.candidate_query_text import write_candidate_query
from roost.model.candidates import CandidateQuery
from roost.model.query_change import QueryChange
from roost.search.candidate_order import CandidateOrder
from roost.search.candidates import find_candidates
from roost.search.effort import Effort, no_pause
from roost.search.forest import Forest, TreeRef
from roost.search.lack import Miss
from roost.search.lone_trees import LoneTrees
from roost.service.query_changes import changes_for, drop_group, drop_in_tree

HINTS_MAX = 5
# How many changed queries the search checks at most, and for how many pairs of changes a miss is
# looked at.
_CHECKS_MAX = 40
_PAIRS_MAX = 12
# A tree that lacks more is too far away for a hint. With more changes, pairs are too many.
_LACKS_MAX = 64
_PAIRED_CHANGES_MAX = 32
# The work in vain of all checks together: a third of a search's.
_UNITS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Hint:
    """A query that has a candidate, and in words how it differs from the query asked."""

    text: str
    # A query string for `GET /allocation_candidates` at 1.39.
    query: str


@dataclass(frozen=True, slots=True)
class _Proposal:
    """Changes that may give a tree a candidate; without a tree, some tree."""

    changes: tuple[QueryChange, ...]
    tree: TreeRef | None

    @property
    def order(self) -> tuple[int, float]:
        return len(self.changes), sum(change.cost for change in self.changes)

    @property
    def subject(self) -> frozenset[tuple[str, ...]]:
        return frozenset(change.subject for change in self.changes)

    @property
    def text(self) -> str:
        text = ", and ".join(change.text for change in self.changes)
        return f"{text[0].upper()}{text[1:]}."

    def apply(self, query: CandidateQuery) -> CandidateQuery | None:
        """The changed query; `None` if the API refuses it."""
        for change in self.changes:
            query = change.apply(query)
        return tidied(query)


def find_hints(
    forest: Forest,
    query: CandidateQuery,
    misses: Iterable[Miss],
    tree: TreeRef | None = None,
    pause: Callable[[], None] = no_pause,
) -> tuple[Hint, ...]:
    """Queries that have a candidate, the smallest change first.

    `misses` are trees without a candidate for the query. A hint works on one of them. If the query
    itself is void, a hint works on this tree or, without one, on any.
    """
    check = _Check(forest, query, pause)
    near = list(misses)
    if not near:
        return check.first(_for_void_query(forest, query, tree))
    options = [(miss, _options(forest, query, miss)) for miss in near]
    found = check.first(
        _Proposal((change,), miss.tree) for miss, its in options for change in _singles(its)
    )
    if found:
        return found
    return check.first(_Proposal(pair, miss.tree) for miss, its in options for pair in _pairs(its))


class _Check:
    """Checks proposals, as long as the effort suffices."""

    def __init__(self, forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._lone_trees = LoneTrees(forest)
        self._query = query
        self._effort = Effort(units=_UNITS_MAX, pause=pause)
        self._left = _CHECKS_MAX

    def first(self, proposals: Iterable[_Proposal]) -> tuple[Hint, ...]:
        """The best proposals that work: of those with one subject the best."""
        found: dict[frozenset[tuple[str, ...]], Hint] = {}
        # The queries that work, and those that do not work on a tree.
        settled: set[str | tuple[str, TreeRef | None]] = set()
        for proposal in sorted(proposals, key=lambda each: each.order):
            if len(found) == HINTS_MAX or not self._left or self._effort.exhausted:
                break
            changed = None if proposal.subject in found else proposal.apply(self._query)
            if changed is None:
                continue
            text = write_candidate_query(changed)
            if text in settled or (text, proposal.tree) in settled:
                continue
            if self._works(changed, proposal.tree):
                found[proposal.subject] = Hint(proposal.text, text)
                settled.add(text)
            else:
                settled.add((text, proposal.tree))
        return tuple(found.values())

    def _works(self, query: CandidateQuery, tree: TreeRef | None) -> bool:
        self._left -= 1
        if tree is not None:
            return self._lone_trees.has_candidate(tree, query, self._effort)
        one = replace(query, limit=1)
        found = find_candidates(self._forest, one, CandidateOrder(), pause=self._effort.pause)
        return bool(found.count)


def _for_void_query(
    forest: Forest, query: CandidateQuery, tree: TreeRef | None
) -> Iterator[_Proposal]:
    """What mends a query that no forest meets: a tree that is not there, a group without a wish."""
    changes = [
        drop_in_tree(group.suffix)
        for group in query.groups
        if group.in_tree is not None and forest.find_tree(group.in_tree) is None
    ]
    changes += [
        drop_group(query, group.suffix)
        for group in query.groups
        if not (group.resources or group.aggregates.any_of or trait_choices_of(group.traits))
    ]
    if changes:
        yield _Proposal(tuple(changes), tree)


def _options(forest: Forest, query: CandidateQuery, miss: Miss) -> list[dict[object, QueryChange]]:
    """For each lack of a miss the changes that may mend it, by their keys."""
    if len(miss.lacks) > _LACKS_MAX:
        return []
    return [
        {change.key: change for change in changes_for(forest, query, miss, lack)}
        for lack in miss.lacks
    ]


def _singles(options: list[dict[object, QueryChange]]) -> list[QueryChange]:
    """The changes each of which may mend all lacks of a miss."""
    if not options:
        return []
    first, *rest = options
    return [change for key, change in first.items() if all(key in its for its in rest)]


def _pairs(
    options: list[dict[object, QueryChange]],
) -> list[tuple[QueryChange, QueryChange]]:
    """The cheapest pairs of changes that may mend all lacks of a miss together."""
    changes = {key: change for its in options for key, change in its.items()}
    if len(changes) > _PAIRED_CHANGES_MAX:
        return []
    pairs = [
        (one, another)
        for one, another in combinations(changes.values(), 2)
        if one.subject != another.subject
        and all(one.key in its or another.key in its for its in options)
    ]
    return sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost)[:_PAIRS_MAX]
