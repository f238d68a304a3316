"""The query string of `GET /allocation_candidates`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from roost.api.candidates import schemas
from roost.api.candidates.group_keys import EXTENDED_GROUP_KEYS, GROUP_KEYS
from roost.api.http.errors import HttpError, OverLimit, bad_value
from roost.api.http.microversions import MAX_VERSION, Microversion
from roost.api.http.query_values import (
    check_repetitions,
    parse_integer,
    parse_required,
    parse_traits,
)
from roost.api.http.requests import parse_query_string
from roost.api.http.validation import Schema, check_query
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.limits import Limits
from roost.model.providers import TraitFilter
from roost.service.errors import ErrorCode

_KEYS = {key.name: key for key in GROUP_KEYS}
_EXTENDED_KEYS = {key.name: key for key in EXTENDED_GROUP_KEYS}
# The schemas know which keys and suffixes a version has.
_GROUP_KEY = re.compile(rf"({'|'.join(_EXTENDED_KEYS)})(.*)\Z")
# The number of variants that the alternatives of a query may make.
_COMBINATIONS_MAX = 32

_NO_TRAITS = TraitFilter()


def parse_candidate_query(
    pairs: list[tuple[str, str]],
    version: Microversion,
    groups_max: int,
    *,
    extended: bool = False,
) -> CandidateQuery:
    """The query in these pairs; 400 with the reason if they are no valid query.

    The order of the checks is part of the API, because the answer names the first mistake. First
    comes the query as a whole, then each value, then the conditions between groups.
    The `extended` grammar has keys that no version of the API has.
    """
    schema = schemas.EXTENDED if extended else schemas.QUERY_SCHEMAS.at(version)
    check_query(pairs, schema)
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    _check_repeated(values, schema)
    _check_group_count(values, groups_max)
    root_required = _parse_root_required(values.get("root_required", ()), extended=extended)
    same_subtrees = _parse_suffix_sets("same_subtree", values.get("same_subtree", ()))
    isolated_sets = _parse_suffix_sets("isolate", values.get("isolate", ()))
    groups = _parse_groups(pairs, values, version, extended=extended)
    if extended:
        _check_alternatives(groups)
        _check_isolated(groups, isolated_sets)
    if version >= (1, 36):
        _check_same_subtrees(groups, same_subtrees)
    else:
        _check_resources(groups)
    _check_conflicts(groups)
    policies = values.get("group_policy")
    if policies is None and not isolated_sets:
        _check_suffixed(groups)
    return CandidateQuery(
        groups=groups,
        isolate=policies is not None and policies[0] == "isolate",
        isolated_sets=isolated_sets,
        same_subtrees=same_subtrees,
        root_required=root_required,
        limit=parse_integer(values["limit"][0]) if "limit" in values else None,
        nested=version >= (1, 29),
    )


def parse_query_text(text: str, limits: Limits) -> CandidateQuery:
    """The query in a text, in the extended grammar; 400 with the reason if it is none."""
    # The parser takes what WSGI gives: bytes as Latin-1.
    raw = text.removeprefix("?").encode("utf-8", "surrogatepass").decode("latin-1")
    pairs = parse_query_string(raw, limits.max_query_parameters)
    return parse_candidate_query(pairs, MAX_VERSION, limits.max_request_groups, extended=True)


# The query as a whole.


def _check_repeated(values: Mapping[str, list[str]], schema: Schema) -> None:
    """Check all values of keys whose first value counts; the schema saw the last one only."""
    for key in ("limit", "group_policy"):
        for value in values.get(key, ())[:-1]:
            # With `resources` the query is complete in every version.
            check_query([("resources", ""), (key, value)], schema)


def _check_group_count(keys: Iterable[str], groups_max: int) -> None:
    """Refuse more groups than allowed: each group is one more provider in every candidate."""
    found = map(_GROUP_KEY.match, keys)
    groups = len({match[2] for match in found if match is not None})
    if groups > groups_max:
        raise OverLimit(
            400,
            f"{groups} request groups are more than the {groups_max} that a query may have "
            "([roost]max_request_groups). Ask for less at a time, or raise the limit.",
            "max_request_groups",
            ErrorCode.QUERY_BAD_VALUE,
        )


def _parse_root_required(values: Sequence[str], *, extended: bool) -> TraitFilter:
    """`root_required`: the traits that the root must have or must not have."""
    if not values:
        return _NO_TRAITS
    if extended:
        return _checked_root_traits(parse_required(values, MAX_VERSION, "root_required"))
    if len(values) > 1:
        raise HttpError(
            400,
            "Query parameter 'root_required' may be specified only once.",
            ErrorCode.QUERY_DUPLICATE_KEY,
        )
    return _checked_root_traits(parse_traits(values[0]))


def _checked_root_traits(traits: TraitFilter) -> TraitFilter:
    """The traits; 400 if some are both required and forbidden."""
    forbidden = set(traits.forbidden)
    conflicts = forbidden.intersection(traits.required)
    for names in traits.any_of:
        if forbidden.issuperset(names):
            conflicts.update(names)
    if conflicts:
        raise bad_value(
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}"
        )
    return traits


def _parse_suffix_sets(key: str, values: Sequence[str]) -> tuple[frozenset[str], ...]:
    """`same_subtree` and `isolate`: each value is a set of suffixes."""
    check_repetitions(key, values)
    sets = tuple(frozenset(suffix.strip() for suffix in value.split(",")) for value in values)
    if any("" in suffixes for suffixes in sets):
        raise bad_value(f"Empty string (unsuffixed group) can not be specified in `{key}`")
    return sets


# The groups, value by value.


def _parse_groups(
    pairs: list[tuple[str, str]],
    values: Mapping[str, list[str]],
    version: Microversion,
    *,
    extended: bool,
) -> tuple[RequestGroup, ...]:
    """The groups in the order of their first key."""
    keys = _EXTENDED_KEYS if extended else _KEYS
    drafts: dict[str, dict[str, Any]] = {}
    for key, value in pairs:
        found = _GROUP_KEY.match(key)
        if found is None:
            continue
        kind, suffix = found.groups()
        draft = drafts.setdefault(suffix, {})
        group_key = keys[kind]
        # Each value is checked at its place, or all of them at the first one.
        if not group_key.takes_all:
            draft[group_key.field] = group_key.parse((value,), version, key)
        elif group_key.field not in draft:
            draft[group_key.field] = group_key.parse(values[key], version, key)
    return tuple(RequestGroup(suffix, **draft) for suffix, draft in drafts.items())


# The conditions between groups.


def _check_same_subtrees(
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


def _check_isolated(
    groups: Sequence[RequestGroup], isolated_sets: Sequence[frozenset[str]]
) -> None:
    """Refuse an `isolate` with a group that the query does not have."""
    _check_real_suffixes("isolate", groups, frozenset[str]().union(*isolated_sets))


def _check_real_suffixes(key: str, groups: Sequence[RequestGroup], named: frozenset[str]) -> None:
    suffixes = {group.suffix for group in groups}
    if not named <= suffixes:
        raise bad_value(
            f"Real suffixes should be specified in `{key}`: {sorted(named - suffixes)} "
            f"not found in {sorted(suffixes)}."
        )


def _check_alternatives(groups: Sequence[RequestGroup]) -> None:
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
    if combinations > _COMBINATIONS_MAX:
        raise OverLimit(
            400,
            f"The alternatives of the groups make {combinations} combinations; "
            f"{_COMBINATIONS_MAX} are allowed. Leave some or_resources out.",
            "alternatives",
            ErrorCode.QUERY_BAD_VALUE,
        )


def _check_resources(groups: Sequence[RequestGroup]) -> None:
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


def _check_conflicts(groups: Sequence[RequestGroup]) -> None:
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


def _check_suffixed(groups: Sequence[RequestGroup]) -> None:
    """Without `group_policy`, at most one group has a suffix."""
    if sum(1 for group in groups if group.suffix) > 1:
        raise HttpError(
            400,
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        )
