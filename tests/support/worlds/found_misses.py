"""The misses of a query without alternatives, after an account of it."""

from __future__ import annotations

from roost.model.candidate_query.query import CandidateQuery
from roost.search.conditions.stages import TreeStage
from roost.search.explain.account import take_account
from roost.search.explain.misses import FoundMisses, find_misses
from roost.search.forest.forest import Forest, TreeRef


def found_misses(
    forest: Forest, query: CandidateQuery, count: int, tree: TreeRef | None = None
) -> FoundMisses:
    """The nearest misses of all trees, or what this tree lacks."""
    served = take_account(forest, query, only_tree=tree).left[TreeStage.TOGETHER]
    return find_misses(forest, query, count, served, only_tree=tree)
