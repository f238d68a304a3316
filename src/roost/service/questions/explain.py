"""Why a query has candidates, or why it has none: the account of a search, in words.

An `Explanation` has what each stage left, and why nothing is left, in plain values. Sentences say
what a tree lacks, with names and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates.effort import no_pause
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.variants import Variant, variants_of
from roost.search.conditions.lack import Lack
from roost.search.conditions.stages import STAGES, GroupStage, TreeStage
from roost.search.explain.account import (
    Account,
    EmptyStage,
    empty_stage_of,
    find_empty_stage,
    largest_free,
    take_account,
)
from roost.search.explain.misses import FoundMisses, Miss, find_misses
from roost.search.forest.forest import Forest, TreeRef
from roost.search.forest.rows import BoolColumn
from roost.service.questions.candidates import check_names
from roost.service.questions.hints import Hint, find_hints
from roost.service.questions.stage_sentences import (
    GAVE_UP,
    group_reason,
    groups_reason,
    root_reason,
    row_sentence,
    together_reason,
    tree_sentence,
)

_ORDER = attrgetter("order")


@dataclass(frozen=True, slots=True)
class Reason:
    """The dominant reason: the first stage that leaves no tree."""

    stage: str
    # The suffix of the group; `None` for a stage of the request.
    group: str | None
    # The class that alone is to blame, if one is.
    resource_class: str | None
    text: str
    # The alternatives that come furthest, by suffix, if the query has some.
    alternatives: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """What one stage left of one request group."""

    stage: str
    providers: int
    trees: int
    text: str


@dataclass(frozen=True, slots=True)
class GroupFunnel:
    """All stages of one request group."""

    group: str
    funnel: tuple[FunnelRow, ...]
    # Which of its alternatives the group takes, if it has some.
    alternative: int | None = None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """What one stage of the request left."""

    stage: str
    trees: int
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a query has candidates, and why or why not."""

    feasible: bool
    # `None` if the query has candidates.
    reason: Reason | None
    # In the order of the query, the alternatives of a group after each other.
    groups: tuple[GroupFunnel, ...]
    trees: tuple[TreeRow, ...]
    # The trees without a candidate that come nearest, best first.
    misses: tuple[Miss, ...]
    # Queries close to this one that have candidates; empty if this one has.
    hints: tuple[Hint, ...]
    # False if the effort of a search did not suffice to look at every combination.
    exact: bool


class _ExplainedVariant(NamedTuple):
    """A variant of a query, and its account."""

    query: CandidateQuery
    alternatives: Mapping[str, int]
    account: Account


def explain(
    forest: Forest,
    query: CandidateQuery,
    *,
    only_tree: TreeRef | None = None,
    misses: int = 5,
    pause: Callable[[], None] = no_pause,
) -> Explanation:
    """What each stage leaves of a query, of all trees or of one; `Invalid` for an unknown name.

    `misses` is the number of nearest misses at most. Hints begin with misses: 0 means neither.
    """
    check_names(forest.vocabulary, query)
    variants = _explained_variants(forest, query, only_tree, pause)
    feasible = any(variant.account.is_feasible for variant in variants)
    exact = all(variant.account.is_exact for variant in variants)
    reason = None
    if not feasible:
        empty = [empty_stage_of(forest, variant.account) for variant in variants]
        reason = _dominant_reason(forest, variants, empty, only_tree, is_exact=exact)
    found = _find_misses(forest, variants, misses, only_tree, pause)
    wants_hints = misses > 0 and not feasible
    return Explanation(
        feasible=feasible,
        reason=reason,
        groups=_funnels(query, variants),
        trees=_tree_rows(query, variants),
        misses=found.nearest,
        hints=(find_hints(forest, query, found.kinds, only_tree, pause) if wants_hints else ()),
        exact=exact,
    )


def describe_account(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> list[str]:
    """What each stage leaves of a query all of whose names exist, one sentence for each stage."""
    variants = _explained_variants(forest, query, None, pause)
    rows = [row.text for funnel in _funnels(query, variants) for row in funnel.funnel]
    return rows + [row.text for row in _tree_rows(query, variants)]


def find_reason(
    forest: Forest,
    query: CandidateQuery,
    kept_work: KeptWork | None,
    pause: Callable[[], None],
    *,
    is_exact: bool = True,
) -> Reason:
    """The reason why a search, which left this work, found no candidate; without an account.

    `is_exact` is false if the search gave up. A search for several variants leaves no work.
    """
    variants = variants_of(query)
    empty = [find_empty_stage(forest, its.query, kept_work, pause) for its in variants]
    return _dominant_reason(forest, variants, empty, None, is_exact=is_exact)


def _explained_variants(
    forest: Forest, query: CandidateQuery, only_tree: TreeRef | None, pause: Callable[[], None]
) -> list[_ExplainedVariant]:
    """The variants of a query, with an account each."""
    return [
        _ExplainedVariant(*its, take_account(forest, its.query, only_tree=only_tree, pause=pause))
        for its in variants_of(query)
    ]


def _funnels(
    query: CandidateQuery, variants: Sequence[_ExplainedVariant]
) -> tuple[GroupFunnel, ...]:
    """The funnel of each group; of each of its alternatives, if it has some."""
    found: dict[tuple[int, int], GroupFunnel] = {}
    for variant in variants:
        accounts = zip(variant.query.groups, variant.account.groups, strict=True)
        for position, (group, account) in enumerate(accounts):
            alternative = variant.alternatives.get(group.suffix)
            rows = tuple(
                FunnelRow(
                    stage.value, count.providers, count.trees, row_sentence(group, stage, count)
                )
                for stage, count in account.counts.items()
            )
            key = position, alternative or 0
            found.setdefault(key, GroupFunnel(group.suffix, rows, alternative))
    return tuple(found[key] for key in sorted(found))


def _tree_rows(query: CandidateQuery, variants: Sequence[_ExplainedVariant]) -> tuple[TreeRow, ...]:
    """The trees that each stage of the request leaves, of one variant or another."""
    rows: list[TreeRow] = []
    for stage in TreeStage:
        columns = _joined([variant.account.left[stage] for variant in variants])
        count = sum(int(np.count_nonzero(column)) for column in columns.values())
        rows.append(TreeRow(stage.value, count, tree_sentence(query, stage, count)))
    return tuple(rows)


def _joined(columns: Sequence[Mapping[int, BoolColumn]]) -> Mapping[int, BoolColumn]:
    """By block number, the trees that one of these has."""
    first, *rest = columns
    return reduce(lambda one, more: {key: one[key] | more[key] for key in one}, rest, first)


def _dominant_reason(
    forest: Forest,
    variants: Sequence[Variant | _ExplainedVariant],
    empty_stages: Sequence[EmptyStage | None],
    only_tree: TreeRef | None,
    *,
    is_exact: bool,
) -> Reason:
    """The reason of the variant that comes furthest: there the trees of all variants end."""
    suffixes = [group.suffix for group in variants[0].query.groups]
    furthest: tuple[int, int] | None = None
    for variant, empty in zip(variants, empty_stages, strict=True):
        assert empty is not None, "no variant has a candidate"
        group_position = -1 if empty.suffix is None else suffixes.index(empty.suffix)
        reached = STAGES.index(empty.stage), group_position
        if furthest is None or reached > furthest:
            furthest = reached
            reason = _reason(forest, variant.query, empty, only_tree, is_exact=is_exact)
            found = replace(reason, alternatives=variant.alternatives)
    return found


def _find_misses(
    forest: Forest,
    variants: Sequence[_ExplainedVariant],
    count: int,
    only_tree: TreeRef | None,
    pause: Callable[[], None],
) -> FoundMisses:
    """The nearest misses, each with the alternatives that bring its tree nearest."""
    served = _joined([variant.account.left[TreeStage.TOGETHER] for variant in variants])
    if len(variants) > 1 and not all(variant.account.is_exact for variant in variants):
        # A tree without a candidate for one variant may have one for another.
        return FoundMisses()
    nearest: dict[TreeRef, Miss] = {}
    kinds: list[Miss] = []
    for query, alternatives, _ in variants:
        found = find_misses(forest, query, count, served, only_tree=only_tree, pause=pause)
        for miss in found.nearest:
            chosen = replace(miss, alternatives=alternatives)
            nearest[miss.tree] = min(nearest.get(miss.tree, chosen), chosen, key=_ORDER)
        kinds += [replace(miss, alternatives=alternatives) for miss in found.kinds]
    return FoundMisses(
        tuple(sorted(nearest.values(), key=_ORDER)[:count]), tuple(sorted(kinds, key=_ORDER))
    )


def _reason(
    forest: Forest,
    query: CandidateQuery,
    empty: EmptyStage,
    only_tree: TreeRef | None,
    *,
    is_exact: bool,
) -> Reason:
    stage, suffix, blamed, conflict = empty
    of_one_tree = only_tree is not None
    if isinstance(stage, GroupStage):
        group = next(group for group in query.groups if group.suffix == suffix)
        fact = _fact(forest, group, stage, blamed, only_tree)
        text = group_reason(group, stage, blamed, fact, of_one_tree=of_one_tree)
        return Reason(stage.value, suffix, blamed, text)
    if stage is TreeStage.ROOT:
        text = root_reason(query, of_one_tree=of_one_tree)
    elif stage is TreeStage.GROUPS:
        text = groups_reason(query, of_one_tree=of_one_tree)
    elif is_exact and conflict is not None:
        text = together_reason(conflict, of_one_tree=of_one_tree)
        return Reason(stage.value, None, conflict.resource_class, text)
    else:
        text = GAVE_UP
    return Reason(stage.value, None, None, text)


def _fact(
    forest: Forest,
    group: RequestGroup,
    stage: GroupStage,
    resource_class: str | None,
    only_tree: TreeRef | None,
) -> str | None:
    """How near the nearest provider is, if one class is to blame for a lack of room."""
    if resource_class is None or stage is not GroupStage.ROOM or only_tree is not None:
        return None
    class_id = forest.vocabulary.class_ids[resource_class]
    largest = largest_free(forest, class_id, group.resources[resource_class])
    return f"the most that one has left is {largest:,}"


def uuids_in(misses: Iterable[Miss]) -> set[str]:
    """The uuids of all providers that the sentences name."""
    found: set[str] = set()
    for miss in misses:
        found.add(miss.root)
        found.update(lack.provider for lack in miss.lacks if lack.provider is not None)
    return found


def lack_sentence(lack: Lack, root: str, names: Mapping[str, str]) -> str:
    """What the tree of a root lacks; `names` has the names of providers by uuid."""
    provider = None if lack.provider is None else names.get(lack.provider, lack.provider)
    return f"{lack.condition.lack_text(lack, names.get(root, root), provider)}."
