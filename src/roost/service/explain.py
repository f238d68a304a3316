"""Why a query has candidates, or why it has none: the account of a search, in words."""

from __future__ import annotations

from collections.abc import Callable

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.search.account import Account, take_account
from roost.search.effort import no_pause
from roost.search.empty_stage import (
    EmptyStage,
    empty_stage_of,
    find_empty_stage,
    largest_free,
)
from roost.search.forest import Forest, TreeRef
from roost.search.joint_conditions import JointKind
from roost.search.kept_work import KeptWork
from roost.search.misses import find_misses
from roost.search.stages import GroupStage, RequestStage
from roost.service.candidates import check_names
from roost.service.explanation import Explanation, FunnelRow, GroupFunnel, Reason, TreeRow
from roost.service.hints import find_hints
from roost.service.stage_sentences import (
    GAVE_UP,
    group_reason,
    groups_reason,
    root_reason,
    row_sentence,
    together_reason,
    tree_sentence,
)


def explain(
    forest: Forest,
    query: CandidateQuery,
    *,
    provider_tree: TreeRef | None = None,
    misses: int = 5,
    pause: Callable[[], None] = no_pause,
) -> Explanation:
    """What each stage leaves of a query, of all trees or of one; `Invalid` for an unknown name.

    `misses` is the number of nearest misses at most. Hints begin with misses: 0 means neither.
    """
    check_names(forest.vocabulary, query)
    account = take_account(forest, query, only_tree=provider_tree, pause=pause)
    empty = empty_stage_of(forest, account)
    reason = (
        None
        if empty is None
        else _reason(forest, query, empty, provider_tree, is_exact=account.is_exact)
    )
    found = find_misses(forest, query, misses, provider_tree, pause)
    wants_hints = misses > 0 and not account.is_feasible
    return Explanation(
        feasible=account.is_feasible,
        reason=reason,
        groups=_funnels(query, account),
        trees=_tree_rows(query, account),
        misses=found.nearest,
        hints=(find_hints(forest, query, found.kinds, provider_tree, pause) if wants_hints else ()),
        exact=account.is_exact,
    )


def describe_account(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> list[str]:
    """What each stage leaves of a query all of whose names exist, one sentence for each stage."""
    account = take_account(forest, query, pause=pause)
    rows = [row.text for funnel in _funnels(query, account) for row in funnel.funnel]
    return rows + [row.text for row in _tree_rows(query, account)]


def find_reason(
    forest: Forest,
    query: CandidateQuery,
    kept_work: KeptWork | None,
    pause: Callable[[], None],
    *,
    is_exact: bool = True,
) -> Reason:
    """The reason why a search, which left this work, found no candidate; without an account.

    `is_exact` is false if the search gave up.
    """
    empty = find_empty_stage(forest, query, kept_work, pause)
    return _reason(forest, query, empty, None, is_exact=is_exact)


def _funnels(query: CandidateQuery, account: Account) -> tuple[GroupFunnel, ...]:
    return tuple(
        GroupFunnel(
            group.suffix,
            tuple(
                FunnelRow(
                    stage.value, count.providers, count.trees, row_sentence(group, stage, count)
                )
                for stage, count in its.counts.items()
            ),
        )
        for group, its in zip(query.groups, account.groups, strict=True)
    )


def _tree_rows(query: CandidateQuery, account: Account) -> tuple[TreeRow, ...]:
    return tuple(
        TreeRow(stage.value, count, tree_sentence(query, stage, count))
        for stage, count in account.trees.items()
    )


def _reason(
    forest: Forest,
    query: CandidateQuery,
    empty: EmptyStage,
    only_tree: TreeRef | None,
    *,
    is_exact: bool,
) -> Reason:
    stage, suffix, blamed, clash = empty
    of_one_tree = only_tree is not None
    if isinstance(stage, GroupStage):
        group = next(group for group in query.groups if group.suffix == suffix)
        fact = _fact(forest, group, stage, blamed, only_tree)
        text = group_reason(group, stage, blamed, fact, of_one_tree=of_one_tree)
        return Reason(stage.value, suffix, blamed, text)
    names = forest.vocabulary.class_names
    if stage is RequestStage.ROOT:
        text = root_reason(query, of_one_tree=of_one_tree)
    elif stage is RequestStage.GROUPS:
        text = groups_reason(query, of_one_tree=of_one_tree)
    elif is_exact:
        text = together_reason(query, clash, names, of_one_tree=of_one_tree)
    else:
        return Reason(stage.value, None, None, GAVE_UP)
    is_room = clash is not None and clash.kind is JointKind.ROOM
    blamed = names[clash.which] if clash is not None and is_room else None
    return Reason(stage.value, None, blamed, text)


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
    return f"the most that one has left is {largest}"
