"""Random requests in the extended grammar of `GET /roost/candidates`."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from urllib.parse import urlencode

from hypothesis import strategies as st

from support.scenarios.cloud import Cloud
from support.scenarios.oracle import Group, Query
from support.scenarios.random_clouds import AMOUNTS, CLASSES, TRAITS, Draw, choose, happens, some
from support.scenarios.random_requests import requests
from support.scenarios.requests import Parameter, Request


class ExtendedRequest(Request):
    """A request for `GET /roost/candidates`."""

    @property
    def path(self) -> str:
        return f"/roost/candidates?{urlencode(self.parameters, safe='!:,')}"


@st.composite
def extended_requests(draw: Draw, cloud: Cloud) -> ExtendedRequest:
    """A request with some of the parameters that no version of the API has."""
    request = draw(requests(cloud, newest=True))
    query, parameters = request.query, list(request.parameters)
    groups: list[Group] = []
    for group in query.groups:
        combinations = prod(1 + len(its.alternatives) for its in groups)
        # The API takes 32 combinations, and a group gets two alternatives at most.
        may_choose = combinations * 3 <= 32
        extended, further = extended_group(draw, cloud, group, may_choose=may_choose)
        groups.append(extended)
        parameters += further
    query = replace(query, groups=tuple(groups))
    query, further = with_root_choices(draw, cloud, query)
    parameters += further
    query, further = with_isolated_sets(draw, query)
    parameters += further
    if query.isolated_sets and query.policy == "none" and happens(draw, 50):
        parameters.remove(("group_policy", "none"))
    return ExtendedRequest(in_order_of_parameters(query, parameters), tuple(parameters))


def extended_group(
    draw: Draw, cloud: Cloud, group: Group, *, may_choose: bool
) -> tuple[Group, list[Parameter]]:
    """The group, seldom in a subtree, and sometimes with alternatives."""
    parameters: list[Parameter] = []
    if happens(draw, 25):
        top = choose(draw, list(cloud.world().providers))
        group = replace(group, in_subtree=top)
        parameters.append((f"in_subtree{group.suffix}", top))
    if may_choose and group.resources and happens(draw, 30):
        known = [name for name in CLASSES if name in cloud.named or not name.startswith("CUSTOM")]
        alternatives = [
            {choose(draw, known): choose(draw, AMOUNTS)} for _ in range(choose(draw, [1, 2]))
        ]
        group = replace(group, alternatives=tuple(alternatives))
        for resources in alternatives:
            amounts = ",".join(f"{name}:{amount}" for name, amount in resources.items())
            parameters.append((f"or_resources{group.suffix}", amounts))
    return group, parameters


def with_root_choices(draw: Draw, cloud: Cloud, query: Query) -> tuple[Query, list[Parameter]]:
    if not happens(draw, 30):
        return query, []
    known = [name for name in TRAITS if name in cloud.named or not name.startswith("CUSTOM")]
    items = [frozenset(some(draw, known, 60)) for _ in range(choose(draw, [1, 2]))]
    # The API refuses a choice of forbidden traits.
    items = [item for item in items if item and not item <= query.root_forbidden]
    parameters = [("root_required", "in:" + ",".join(sorted(item))) for item in items]
    return replace(query, root_any=tuple(items)), parameters


def with_isolated_sets(draw: Draw, query: Query) -> tuple[Query, list[Parameter]]:
    suffixes = [group.suffix for group in query.groups if group.suffix]
    if not suffixes or query.policy == "isolate":
        return query, []
    sets = [frozenset(some(draw, suffixes, 70)) for _ in range(choose(draw, [0, 1, 2]))]
    sets = [its for its in sets if its]
    return (
        replace(query, isolated_sets=tuple(sets)),
        [("isolate", ",".join(sorted(its))) for its in sets],
    )


def in_order_of_parameters(query: Query, parameters: list[Parameter]) -> Query:
    """The query with its groups in the order in which the parameters name them first."""
    prefixes = ("resources", "required", "member_of", "in_tree", "in_subtree", "or_resources")
    keys = [key for key, _ in parameters]
    return replace(
        query,
        groups=tuple(
            sorted(
                query.groups,
                key=lambda group: min(
                    keys.index(prefix + group.suffix)
                    for prefix in prefixes
                    if prefix + group.suffix in keys
                ),
            )
        ),
    )
