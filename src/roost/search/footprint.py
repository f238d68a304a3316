"""The footprint of a search: all that it looked at in its forest.

Most changes are claims, and a claim changes one block. A search that has found enough in the first
blocks does not look further. So most answers are the same in the next forest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from roost.model.candidates import CandidateQuery
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.set_table import SetTable
from roost.search.vocabulary import Vocabulary


class Basis(NamedTuple):
    """All that the plan for a query takes from a forest. Equal bases make equal plans."""

    vocabulary: Vocabulary
    # A mask of the plan has a value for each of these sets.
    trait_sets: SetTable[int]
    aggregate_sets: SetTable[str]
    # The tree of in_tree, and the provider of in_subtree, of each request group that has one.
    places: tuple[tuple[TreeRef | None, ProviderRef | None], ...]

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Basis:
        """The basis of the plan for this query in this forest."""
        return cls(
            forest.vocabulary,
            forest.trait_sets,
            forest.aggregate_sets,
            tuple(
                [
                    (
                        None if group.in_tree is None else forest.find_tree(group.in_tree),
                        None
                        if group.in_subtree is None
                        else forest.find_provider(group.in_subtree),
                    )
                    for group in query.groups
                    if group.in_tree is not None or group.in_subtree is not None
                ]
            ),
        )


@dataclass(slots=True)
class Footprint:
    """All that a search looked at. Where it is unchanged, the search finds the same again."""

    query: CandidateQuery
    basis: Basis
    # The sharing providers of the forest, and the tokens of their blocks.
    sharing_refs: tuple[ProviderRef, ...]
    sharing_tokens: tuple[object, ...]
    # The tokens of the first blocks, as far as the search has looked.
    tokens: list[object] = field(default_factory=list)
    # Whether the search has seen that no block follows them.
    at_end: bool = False

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery, basis: Basis) -> Footprint:
        """The footprint of a search that has not looked at any block yet."""
        return cls(query, basis, forest.sharing_refs, _sharing_tokens(forest))

    def is_unchanged_in(self, forest: Forest) -> bool:
        """Whether the search would look at the same things in this forest."""
        count = len(self.tokens)
        return (
            (len(forest.blocks) == count if self.at_end else len(forest.blocks) >= count)
            and [block.token for block in forest.blocks[:count]] == self.tokens
            and self.sharing_refs == forest.sharing_refs
            and self.sharing_tokens == _sharing_tokens(forest)
            and self.basis == Basis.of(forest, self.query)
        )


def _sharing_tokens(forest: Forest) -> tuple[object, ...]:
    block_numbers = dict.fromkeys(ref.block_number for ref in forest.sharing_refs)
    return tuple([forest.blocks[block_number].token for block_number in block_numbers])
