"""A query for allocation candidates as the query string that clients send at 1.39."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import TraitFilter


def write_candidate_query(query: CandidateQuery) -> str:
    """The query string of a query that the API accepts. To parse it gives the query again.

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
    if query.root_required.names:
        yield "root_required", ",".join(_plain_traits(query.root_required))
    for suffixes in query.same_subtrees:
        yield "same_subtree", ",".join(sorted(suffixes))
    if query.isolate:
        yield "group_policy", "isolate"
    elif sum(1 for group in query.groups if group.suffix) > 1:
        yield "group_policy", "none"
    if query.limit is not None:
        yield "limit", str(query.limit)


def _group_pairs(group: RequestGroup) -> Iterator[tuple[str, str]]:
    if group.resources:
        yield "resources", ",".join(f"{name}:{amount}" for name, amount in group.resources.items())
    plain = list(_plain_traits(group.traits))
    if plain:
        yield "required", ",".join(plain)
    for names in group.traits.any_of:
        yield "required", f"in:{','.join(names)}"
    for uuids in group.aggregates.any_of:
        yield "member_of", uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}"
    if group.aggregates.forbidden:
        yield "member_of", f"!in:{','.join(group.aggregates.forbidden)}"
    if group.in_tree is not None:
        yield "in_tree", group.in_tree


def _plain_traits(traits: TraitFilter) -> Iterator[str]:
    yield from traits.required
    yield from (f"!{name}" for name in traits.forbidden)
