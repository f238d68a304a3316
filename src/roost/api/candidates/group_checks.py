"""The conditions between the request groups of a query."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from roost.api.errors import HttpError, OverLimit
from roost.model.candidates import RequestGroup
from roost.service.errors import ErrorCode

# The number of variants that the alternatives of a query may make.
COMBINATIONS_MAX = 32


def check_same_subtrees(
    groups: Sequence[RequestGroup], same_subtrees: Sequence[frozenset[str]]
) -> None:
    """From 1.36 on, a group without resources must be in a `same_subtree`."""
    if not any(group.resources for group in groups):
        raise HttpError(
            400,
            "There must be at least one resources or resources[$S] parameter.",
            ErrorCode.QUERY_MISSING_VALUE,
        )
    named = frozenset[str]().union(*same_subtrees)
    alone = [group.suffix for group in groups if not group.resources and group.suffix not in named]
    if alone:
        raise bad_value(
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {sorted(alone)}."
        )
    if not named:
        return
    _check_real_suffixes("same_subtree", groups, named)


def check_isolated(groups: Sequence[RequestGroup], isolated_sets: Sequence[frozenset[str]]) -> None:
    """Refuse an `isolate` with a group that the query does not have."""
    _check_real_suffixes("isolate", groups, frozenset[str]().union(*isolated_sets))


def _check_real_suffixes(key: str, groups: Sequence[RequestGroup], named: frozenset[str]) -> None:
    suffixes = {group.suffix for group in groups}
    if not named <= suffixes:
        raise bad_value(
            f"Real suffixes should be specified in `{key}`: {sorted(named - suffixes)} "
            f"not found in {sorted(suffixes)}."
        )


def check_alternatives(groups: Sequence[RequestGroup]) -> None:
    """Refuse alternatives to nothing, and too many of them: each combination is a search."""
    for group in groups:
        if group.alternatives and not group.resources:
            raise HttpError(
                400,
                f"or_resources{group.suffix} is an alternative to resources{group.suffix}, which "
                f"is missing. Send resources{group.suffix}, too.",
                ErrorCode.QUERY_MISSING_VALUE,
            )
    combinations = prod(1 + len(group.alternatives) for group in groups)
    if combinations > COMBINATIONS_MAX:
        raise OverLimit(
            400,
            f"The alternatives of the groups make {combinations} combinations; "
            f"{COMBINATIONS_MAX} are allowed. Leave some or_resources out.",
            "alternatives",
            ErrorCode.QUERY_BAD_VALUE,
        )


def check_resources(groups: Sequence[RequestGroup]) -> None:
    """Until 1.35, there is at least one group, and every group asks for resources."""
    bare = [group for group in groups if not group.resources]
    traits = [f"required{group.suffix}" for group in bare if group.traits.required]
    if traits:
        raise HttpError(
            400,
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(traits)}",
        )
    aggregates = [
        f"member_of{group.suffix}"
        for group in bare
        if group.aggregates.any_of or group.aggregates.forbidden
    ]
    if aggregates:
        raise HttpError(
            400,
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(aggregates)}",
        )
    if bare:
        raise HttpError(400, "All request groups must specify resources.")
    if not groups:
        raise HttpError(
            400, "At least one request group (`resources` or `resources{$S}`) is required."
        )


def check_conflicts(groups: Sequence[RequestGroup]) -> None:
    """Refuse a group that forbids a trait it requires, or all traits of which it requires one."""
    conflicts: list[str] = []
    for group in groups:
        traits = group.traits
        if not traits.forbidden:
            continue
        forbidden = set(traits.forbidden)
        choices = [{name} for name in traits.required] + [set(names) for names in traits.any_of]
        conflicts += [
            f"required{group.suffix}: ({', '.join(sorted(choice))})"
            for choice in choices
            if choice <= forbidden
        ]
    if conflicts:
        raise HttpError(
            400,
            "Conflicting required and forbidden traits found in the following traits keys: "
            f"{', '.join(sorted(conflicts))}",
        )


def check_suffixed(groups: Sequence[RequestGroup]) -> None:
    """Without `group_policy`, at most one group has a suffix."""
    if sum(1 for group in groups if group.suffix) > 1:
        raise HttpError(
            400,
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        )


def bad_value(sentence: str) -> HttpError:
    """400 for a value of the query."""
    return HttpError(400, sentence, ErrorCode.QUERY_BAD_VALUE)
