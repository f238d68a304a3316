"""A query for candidates as the query string that clients send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import TraitFilter


def write_candidate_query(query: CandidateQuery) -> str:
    """The query string of a query that the API accepts. To parse it gives the query again.

    `GET /allocation_candidates` takes it at 1.39, unless only `GET /roost/candidates` can answer.

    >>> write_candidate_query(CandidateQuery((RequestGroup("_NIC", {"SRIOV_NET_VF": 1}),), limit=5))
    'resources_NIC=SRIOV_NET_VF:1&limit=5'
    """
    return "&".join(
        f"{quote(name, safe='')}={quote(value, safe='!:,')}" for name, value in _pairs(query)
    )


def _pairs(query: CandidateQuery) -> Iterator[tuple[str, str]]:
    for group in query.groups:
        for name, value in _group_pairs(group):
            yield f"{name}{group.suffix}", value
    yield from _trait_pairs("root_required", query.root_required)
    for suffixes in query.same_subtrees:
        yield "same_subtree", ",".join(sorted(suffixes))
    for suffixes in query.isolated_sets:
        yield "isolate", ",".join(sorted(suffixes))
    if query.isolate:
        yield "group_policy", "isolate"
    elif sum(1 for group in query.groups if group.suffix) > 1:
        yield "group_policy", "none"
    if query.limit is not None:
        yield "limit", str(query.limit)


def _group_pairs(group: RequestGroup) -> Iterator[tuple[str, str]]:
    if group.resources:
        yield "resources", _amounts(group.resources)
    for resources in group.alternatives:
        yield "or_resources", _amounts(resources)
    yield from _trait_pairs("required", group.traits)
    for uuids in group.aggregates.any_of:
        yield "member_of", uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}"
    if group.aggregates.forbidden:
        yield "member_of", f"!in:{','.join(group.aggregates.forbidden)}"
    if group.in_tree is not None:
        yield "in_tree", group.in_tree
    if group.in_subtree is not None:
        yield "in_subtree", group.in_subtree


def _amounts(resources: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{amount}" for name, amount in resources.items())


def _trait_pairs(key: str, traits: TraitFilter) -> Iterator[tuple[str, str]]:
    plain = [*traits.required, *(f"!{name}" for name in traits.forbidden)]
    if plain:
        yield key, ",".join(plain)
    for names in traits.any_of:
        yield key, f"in:{','.join(names)}"
