"""Hints: queries close to one without candidates, each of which has a candidate.

Every hint begins with a tree that comes near: a few changes mend all that the tree lacks. The
search itself checks that the tree then has a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, product

from roost.model.candidate_query.change import QueryChange, drop_group, unlike
from roost.model.candidate_query.edits import tidied
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import find_candidates, has_candidate
from roost.search.candidates.variants import Variant, variants_of, with_alternatives
from roost.search.conditions import asks_nothing
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.places import drop_place
from roost.search.explain.misses import Miss
from roost.search.forest.forest import Forest, TreeRef
from roost.service.questions.candidate_query_text import write_candidate_query

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
    # A query string for `GET /roost/candidates`. `GET /allocation_candidates` takes it at 1.39,
    # unless the query asked has further parameters.
    query: str


@dataclass(frozen=True, slots=True)
class _Proposal:
    """Changes that may give a tree a candidate; without a tree, some tree."""

    changes: tuple[QueryChange, ...]
    tree: TreeRef | None
    # The variant of the query that gets the candidate.
    variant: Variant

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

    def changed_variant(self) -> CandidateQuery | None:
        """The variant with the changes; `None` if the API refuses it."""
        query = self.variant.query
        for change in self.changes:
            query = change.apply(query)
        return tidied(query)


def find_hints(
    forest: Forest,
    query: CandidateQuery,
    misses: Iterable[Miss],
    only_tree: TreeRef | None = None,
    pause: Callable[[], None] = no_pause,
) -> tuple[Hint, ...]:
    """Queries that have a candidate, the smallest change first.

    `misses` are trees without a candidate for the query. A hint works on one of them. If the query
    itself is void, a hint works on this tree or, without one, on any.
    """
    check = _Check(forest, query, pause)
    near = list(misses)
    if not near:
        return check.first(_for_void_query(forest, query, only_tree))
    variants = {tuple(its.alternatives.items()): its for its in variants_of(query)}
    options = [
        (miss, variant, _options(variant.query, miss))
        for miss in near
        for variant in (variants[tuple(miss.alternatives.items())],)
    ]
    found = check.first(
        _Proposal((change,), miss.tree, variant)
        for miss, variant, its in options
        for change in _singles(its)
    )
    if found:
        return found
    return check.first(
        _Proposal(pair, miss.tree, variant)
        for miss, variant, its in options
        for pair in _pairs(its)
    )


class _Check:
    """Checks proposals, as long as the effort suffices."""

    def __init__(self, forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._sharing = forest.with_sharing_alone()
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
            changed = None if proposal.subject in found else proposal.changed_variant()
            if changed is None:
                continue
            taken = proposal.variant.alternatives
            text = write_candidate_query(with_alternatives(changed, self._query, taken))
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
            return has_candidate(self._forest, self._sharing, tree, query, self._effort)
        one = replace(query, limit=1)
        found = find_candidates(self._forest, one, CandidateOrder(), pause=self._effort.pause)
        return bool(found.count)


def _for_void_query(
    forest: Forest, query: CandidateQuery, only_tree: TreeRef | None
) -> Iterator[_Proposal]:
    """What mends a query that no forest meets: a tree that is not there, a group without a wish."""
    ways = product(*(_ways_to_mend(forest, query, group) for group in query.groups))
    for way in islice(ways, _CHECKS_MAX):
        changes = tuple(chain.from_iterable(way))
        for variant in variants_of(query) if changes else ():
            yield _Proposal(changes, only_tree, variant)


def _ways_to_mend(
    forest: Forest, query: CandidateQuery, group: RequestGroup
) -> list[tuple[QueryChange, ...]]:
    """The changes each of which lets a group have providers in some forest; none if it may."""
    if asks_nothing(group):
        return [(drop_group(query, group.suffix),)]
    tree = group.in_tree and forest.find_tree(group.in_tree)
    top_tree = group.in_subtree and forest.find_tree(group.in_subtree)
    drop_tree = drop_place(LackRule.IN_TREE, group.suffix)
    drop_subtree = drop_place(LackRule.IN_SUBTREE, group.suffix)
    drops = (
        *((drop_tree,) if group.in_tree and not tree else ()),
        *((drop_subtree,) if group.in_subtree and not top_tree else ()),
    )
    if not drops and tree and top_tree and tree != top_tree and group.resources:
        # in_subtree names a provider of another tree.
        return [(drop_subtree,), (drop_tree,)]
    return [drops]


def _options(query: CandidateQuery, miss: Miss) -> list[dict[object, QueryChange]]:
    """For each lack of a miss the changes that may mend it, by their keys."""
    if len(miss.lacks) > _LACKS_MAX:
        return []
    return [{change.key: change for change in _changes(query, lack)} for lack in miss.lacks]


def _changes(query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
    """The changes that may mend a lack: those of its condition, or leave its groups out."""
    yield from lack.condition.changes(query, lack)
    suffixes = lack.groups or (() if lack.group is None else (lack.group,))
    yield from (drop_group(query, suffix) for suffix in unlike(query, suffixes))


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
