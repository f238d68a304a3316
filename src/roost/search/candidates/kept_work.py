"""Kept work: what a search leaves for later searches for its query, and the rule when it holds.

Most changes are claims, and a claim changes one block. So most of what a search has worked out
stays right in the next forest. There is one rule: kept work holds in a forest with an equal
`Basis`, as far as the blocks that it looked at have the same tokens there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.plan import Plan, make_plan
from roost.search.candidates.rules import Rules, SharingFacts
from roost.search.candidates.scan import AlikeTrees, may_fit, scan_block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.vocabulary import Vocabulary

# The memory of the scans of one query, in words of eight bytes.
_WORDS_MAX = 100_000
# What a scan takes, what each of its `AlikeTrees` takes beside the problem, and each of its trees.
_SCAN_WORDS, _ALIKE_WORDS, _TREE_WORDS = 40, 20, 5
# What the token of a block takes.
_TOKEN_WORDS = 10


class Basis(NamedTuple):
    """All that the work on a query takes from a forest, besides blocks."""

    vocabulary: Vocabulary
    # The tokens of both tables of sets. A mask of the plan has a value for each set.
    trait_sets: object
    aggregate_sets: object
    sharing_refs: tuple[ProviderRef, ...]
    # The tree of in_tree, and the provider of in_subtree, of each request group that has one.
    places: tuple[tuple[TreeRef | None, ProviderRef | None], ...]

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Basis:
        """The basis of the work on this query in this forest."""
        return cls(
            forest.vocabulary,
            forest.trait_sets.token,
            forest.aggregate_sets.token,
            forest.sharing_refs,
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


class KeptScan(NamedTuple):
    """The scan of one block, as far as a search has followed it."""

    # The token of the block.
    token: object
    alike: Sequence[AlikeTrees] = ()
    words: int = _SCAN_WORDS
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class KeptWork:
    """What a search leaves: its plan, its scans, and what it looked at."""

    query: CandidateQuery
    basis: Basis
    # `None`: no provider can meet the query.
    plan: Plan | None
    # By block number. A scan looks at its block. It looks at no block of sharing providers: it
    # takes no more from them than these facts, which most claims leave as they are.
    scans: Mapping[int, KeptScan] = field(default_factory=dict)
    sharing_facts: SharingFacts = ((), ())
    # The tokens of the blocks that the search looked at, and of those of sharing providers.
    looked_at: Mapping[int, object] = field(default_factory=dict)
    # Whether the search has seen that the forest has no other block.
    at_end: bool = False
    # About how much memory it takes, in words of eight bytes.
    words: int = 0

    def finds_the_same_in(self, forest: Forest) -> bool:
        """Whether the search would find the same in this forest."""
        blocks = forest.blocks
        if self.at_end and len(blocks) != len(self.looked_at):
            return False
        for block_number, token in self.looked_at.items():
            if block_number >= len(blocks) or blocks[block_number].token is not token:
                return False
        return self.basis == Basis.of(forest, self.query)


class SearchWork:
    """Makes the plan and the scans of one search, or takes them from earlier work."""

    def __init__(
        self, forest: Forest, query: CandidateQuery, earlier: KeptWork | None = None
    ) -> None:
        self._forest = forest
        self._query = query
        self._basis = Basis.of(forest, query)
        self._earlier = earlier if earlier is not None and earlier.basis == self._basis else None
        self.plan = make_plan(forest, query) if self._earlier is None else self._earlier.plan
        self._sharing_facts: SharingFacts = ((), ())
        self._scans: dict[int, KeptScan] = {}
        self._words = 0
        self._looked_at = {
            ref.block_number: forest.blocks[ref.block_number].token for ref in forest.sharing_refs
        }
        self._at_end = False

    def scans(self, rules: Rules, block_numbers: Sequence[int]) -> Iterator[AlikeTrees]:
        """The trees that may have a solution, by the rules of the plan, in this order of blocks."""
        self._sharing_facts = rules.sharing_facts
        if self._earlier is not None and self._earlier.sharing_facts == self._sharing_facts:
            self._scans = _scans_in(self._forest, self._earlier)
            self._words = sum([scan.words for scan in self._scans.values()])
        for block_number in block_numbers:
            self._looked_at[block_number] = self._forest.blocks[block_number].token
            yield from self._scan(block_number, rules)
            rules.effort.pause()
        self._at_end = True

    def kept(self) -> KeptWork:
        """What the search leaves, when it is done."""
        return KeptWork(
            self._query,
            self._basis,
            self.plan,
            self._scans,
            self._sharing_facts,
            self._looked_at,
            self._at_end,
            self._words + _TOKEN_WORDS * len(self._looked_at) + self._plan_words(),
        )

    def _plan_words(self) -> int:
        """About what the masks of the plan take, which have a byte for each set."""
        if self.plan is None:
            return 0
        masks = 2 + 2 * len(self.plan.requirements) + len(self.plan.trait_choices)
        return masks * (len(self._forest.trait_sets) + len(self._forest.aggregate_sets)) // 8

    def _scan(self, block_number: int, rules: Rules) -> Iterator[AlikeTrees]:
        """The trees of one block, as a scan of the block finds them."""
        block = self._forest.blocks[block_number]
        known = self._scans.get(block_number)
        if known is None:
            known = KeptScan(block.token)
            self._words += known.words
        yield from known.alike
        if known.is_complete:
            return
        alike, words, is_cut = list(known.alike), known.words, False
        if may_fit(rules, block, block_number):
            # The same scan finds the same again, after those that are known.
            for found in islice(scan_block(self._forest, block_number, rules), len(alike), None):
                more = _ALIKE_WORDS + found.problem.memory_words
                more += _TREE_WORDS * len(found.tree_numbers)
                is_cut = is_cut or self._words + more > _WORDS_MAX
                if not is_cut:
                    alike.append(found)
                    words += more
                    self._words += more
                    self._scans[block_number] = KeptScan(block.token, alike, words)
                yield found
        self._scans[block_number] = KeptScan(block.token, alike, words, is_complete=not is_cut)


def _scans_in(forest: Forest, earlier: KeptWork) -> dict[int, KeptScan]:
    """The scans of the blocks that the forest still has."""
    block_count = len(forest.blocks)
    return {
        block_number: scan
        for block_number, scan in earlier.scans.items()
        if block_number < block_count and forest.blocks[block_number].token is scan.token
    }
