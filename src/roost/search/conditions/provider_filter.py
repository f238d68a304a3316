"""The conditions of a provider list, and the providers of a forest that meet them.

A provider list asks of each provider what a suffixed request group asks of one provider. Neither
the provider's tree nor sharing providers count.
"""

from __future__ import annotations

import numpy as np

from roost.model.candidate_query.query import RequestGroup
from roost.model.providers import ProviderFilter
from roost.search.conditions.condition import BlockView
from roost.search.conditions.requirement import eligible_indexes, requirement_of
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IntColumn

# Any suffix does: only the unsuffixed group looks at whole trees.
_SUFFIX = "_LIST"


def find_provider_ids(forest: Forest, wanted: ProviderFilter) -> IntColumn:
    """The sorted ids of the providers that meet all conditions of the filter.

    All names in the conditions exist. The function ignores the conditions on rows, which the store
    checks.
    """
    group = RequestGroup(_SUFFIX, wanted.resources, wanted.traits, wanted.aggregates)
    requirement = requirement_of(forest, group)
    found = [
        block.ids[eligible_indexes(requirement, BlockView(block, block_number))]
        for block_number, block in enumerate(forest.blocks)
    ]
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
