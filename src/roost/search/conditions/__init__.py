"""The conditions of a request, one class each: all that the search and its explanation know of it.

A `Condition` is on the provider of a slot, a `RootCondition` on the root of a tree. The search, the
choice of blocks, the account, the misses, the hints and the sentences go through these lists.
A requirement has all conditions of a slot. `search/explain/joint_conditions.py` has what the groups
must fulfil together.
"""

from __future__ import annotations

from roost.model.candidate_query.query import RequestGroup
from roost.search.conditions.aggregates import Aggregates
from roost.search.conditions.amounts import WantedResources
from roost.search.conditions.condition import Condition
from roost.search.conditions.places import InSubtree, InTree
from roost.search.conditions.traits import Traits

# All but `WantedResources`, which finds the providers at which these look, in the order of stages.
FURTHER_CONDITIONS: tuple[type[Condition], ...] = (Traits, Aggregates, InTree, InSubtree)
GROUP_CONDITIONS: tuple[type[Condition], ...] = (WantedResources, *FURTHER_CONDITIONS)


def asks_nothing(group: RequestGroup) -> bool:
    """Whether the group has neither resources nor a positive condition: no provider meets it."""
    return not any(kind.is_wish(group) for kind in GROUP_CONDITIONS)
