"""Kept work: what the searches for one query leave for later searches for it.

The plan of a query and the scan of a block depend on little besides the query and the block. Most
changes are claims, and a claim changes one block. So the next search scans that block only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from roost.model.candidates import CandidateQuery
from roost.search.block_choice import may_fit
from roost.search.footprint import Basis
from roost.search.forest import Forest
from roost.search.plan import Plan, make_plan
from roost.search.rules import Rules, SharingFacts
from roost.search.scan import AlikeTrees, scan_block

# The memory of the scans of one query, in words of eight bytes.
_WORDS_MAX = 100_000
# What a scan takes, what each of its `AlikeTrees` takes beside the problem, and each of its trees.
_SCAN_WORDS, _ALIKE_WORDS, _TREE_WORDS = 40, 20, 5


@dataclass(slots=True)
class _KeptScan:
    """The scan of one block, as far as a search has followed it. Only that search adds to it."""

    # The token of the block.
    token: object
    alike: list[AlikeTrees] = field(default_factory=list)
    words: int = _SCAN_WORDS
    is_complete: bool = False
    # Whether something had to be left out after the last of `alike`.
    is_cut: bool = False


class KeptScans:
    """The scans of single blocks for one plan. For any number of threads."""

    def __init__(self, plan: Plan, sharing_facts: SharingFacts) -> None:
        self._plan = plan
        self._sharing_facts = sharing_facts
        # By block number.
        self._scans: dict[int, _KeptScan] = {}
        self._words = 0
        self._lock = threading.Lock()

    def belong_to(self, rules: Rules) -> bool:
        """Whether scans by these rules would find the same: plan and sharing facts are equal."""
        return self._plan is rules.plan and self._sharing_facts == rules.sharing_facts

    def scan(self, forest: Forest, block_number: int, rules: Rules) -> Iterator[AlikeTrees]:
        """The trees of a block that may have a solution, as a scan of the block finds them."""
        token = forest.blocks[block_number].token
        kept = self._scans.get(block_number)
        if kept is None or kept.token is not token:
            kept = _KeptScan(token)
        # In this order: the list does not grow after the scan is complete.
        is_complete, known = kept.is_complete, kept.alike.copy()
        yield from known
        if is_complete:
            return
        further = _KeptScan(token, known, kept.words)
        self._put(block_number, further)
        if may_fit(rules, forest.blocks[block_number], block_number):
            # The same scan finds the same again, after those that are known.
            found = scan_block(forest, block_number, rules)
            for alike in islice(found, len(known), None):
                self._add(block_number, further, alike)
                yield alike
        further.is_complete = not further.is_cut

    def _put(self, block_number: int, scan: _KeptScan) -> None:
        with self._lock:
            before = self._scans.get(block_number)
            self._scans[block_number] = scan
            self._words += scan.words - (before.words if before else 0)

    def _add(self, block_number: int, scan: _KeptScan, alike: AlikeTrees) -> None:
        words = _ALIKE_WORDS + alike.problem.memory_words + _TREE_WORDS * len(alike.tree_numbers)
        with self._lock:
            is_kept = self._scans.get(block_number) is scan
            if scan.is_cut or not is_kept or self._words + words > _WORDS_MAX:
                scan.is_cut = True
                return
            scan.alike.append(alike)
            scan.words += words
            self._words += words


class KeptWork:
    """The plan and the scans of the last search for a query. For any number of threads."""

    def __init__(self) -> None:
        self._planned: tuple[Basis, Plan | None] | None = None
        self._scans: KeptScans | None = None

    def plan(self, forest: Forest, query: CandidateQuery, basis: Basis) -> Plan | None:
        """The plan for the query in a forest with this basis."""
        planned = self._planned
        if planned is None or planned[0] != basis:
            planned = self._planned = basis, make_plan(forest, query)
        return planned[1]

    def scans(self, rules: Rules) -> KeptScans:
        """The scans by these rules."""
        scans = self._scans
        if scans is None or not scans.belong_to(rules):
            scans = self._scans = KeptScans(rules.plan, rules.sharing_facts)
        return scans
