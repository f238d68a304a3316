"""A query for candidates as the query string that clients send."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from roost.model.candidate_query.query import CandidateQuery
from roost.search.conditions import GROUP_CONDITIONS
from roost.search.conditions.traits import RootTraits


def write_candidate_query(query: CandidateQuery) -> str:
    """The query string of a query that the API accepts. To parse it gives the query again.

    `GET /allocation_candidates` takes it at 1.39, unless only `GET /roost/candidates` can answer.

    >>> from roost.model.candidate_query.query import RequestGroup
    >>> write_candidate_query(CandidateQuery((RequestGroup("_NIC", {"SRIOV_NET_VF": 1}),), limit=5))
    'resources_NIC=SRIOV_NET_VF:1&limit=5'
    """
    return "&".join(
        f"{quote(name, safe='')}={quote(value, safe='!:,')}" for name, value in _pairs(query)
    )


def _pairs(query: CandidateQuery) -> Iterator[tuple[str, str]]:
    for group in query.groups:
        for kind in GROUP_CONDITIONS:
            yield from ((f"{name}{group.suffix}", value) for name, value in kind.query_pairs(group))
    yield from RootTraits.query_pairs(query)
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
