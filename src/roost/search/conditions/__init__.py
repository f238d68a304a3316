"""The conditions of a request, one class each: all that the search and its explanation know of it.

A `Condition` is on the provider of a slot, a `RootCondition` on the root of a tree. The search, the
choice of blocks, the account, the misses, the hints and the sentences go through these lists. What
the groups must fulfil together stands elsewhere.
"""

from __future__ import annotations

from roost.model.candidates import RequestGroup
from roost.search.conditions.aggregates import Aggregates, RootAggregates
from roost.search.conditions.amounts import WantedResources
from roost.search.conditions.condition import Condition, RootCondition
from roost.search.conditions.traits import RootRequired, Traits
from roost.search.conditions.trees import Anchor, InSubtree, InTree

# All but `WantedResources`, in the order of their stages. They look at providers that `WantedResources` found.
FURTHER_CONDITIONS: tuple[type[Condition], ...] = (Traits, Aggregates, InTree, InSubtree)
GROUP_CONDITIONS: tuple[type[Condition], ...] = (WantedResources, *FURTHER_CONDITIONS)
ROOT_CONDITIONS: tuple[type[RootCondition], ...] = (Anchor, RootRequired, RootAggregates)


def asks_nothing(group: RequestGroup) -> bool:
    """Whether the group has neither resources nor a positive condition: no provider meets it."""
    return not any(kind.is_wish(group) for kind in GROUP_CONDITIONS)
