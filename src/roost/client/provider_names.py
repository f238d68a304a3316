"""The names of providers, for answers that have uuids only."""

from __future__ import annotations

from collections.abc import Iterable

from roost.client.parallel import in_order
from roost.client.placement import Placement

_CONCURRENCY = 4
_TREES_MAX = 100
"""The number of trees up to which single requests cost less than a list of all providers."""


def names_in_trees(placement: Placement, roots: Iterable[str]) -> dict[str, str]:
    """The name of each provider in the trees of these roots, by uuid."""
    wanted = list(dict.fromkeys(roots))
    if len(wanted) > _TREES_MAX:
        return {body["uuid"]: body["name"] for body in placement.providers()}
    trees = in_order(wanted, placement.tree, _CONCURRENCY)
    return {body["uuid"]: body["name"] for tree in trees for body in tree}
