"""The account of a search: what each constraint of each group left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roost.search.block import Block

EXAMPLES_MAX = 3


@dataclass(slots=True)
class Entry:
    """What was left after one constraint of a demand: how many, and a few of them by uuid.

    Constraints on trees as a whole have no groups.
    """

    groups: tuple[str, ...]
    # Which of the plan's demands; the unsuffixed group has one for each class.
    demand: int | None
    constraint: str
    providers: int = 0
    trees: int = 0
    examples: list[str] = field(default_factory=list)

    def add_examples(self, block: Block, places: list[int]) -> None:
        """Name these providers, as long as there are few examples."""
        room = EXAMPLES_MAX - len(self.examples)
        self.examples += [block.uuids[place].decode() for place in places[:room]]


class Account:
    """Collects entries in the order in which constraints are met; nothing is noted twice.

    A search without an account does not do any of this, and may stop as soon as it has enough;
    with one it looks at everything.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int | None, str], Entry] = {}

    @property
    def entries(self) -> list[Entry]:
        """All entries so far."""
        return list(self._entries.values())

    def providers_left(
        self,
        demand: int,
        groups: tuple[str, ...],
        constraint: str,
        block: Block,
        places: npt.NDArray[np.int32],
    ) -> None:
        """These providers of the block passed this constraint, and all before it."""
        entry = self._entry(groups, demand, constraint)
        entry.providers += len(places)
        entry.trees += len(np.unique(block.trees[places]))
        entry.add_examples(block, places[:EXAMPLES_MAX].tolist())

    def trees_left(self, constraint: str, block: Block, trees: npt.NDArray[np.integer]) -> None:
        """These trees of the block are left."""
        entry = self._entry((), None, constraint)
        entry.trees += len(trees)
        entry.add_examples(block, block.starts[trees[:EXAMPLES_MAX]].tolist())

    def _entry(self, groups: tuple[str, ...], demand: int | None, constraint: str) -> Entry:
        return self._entries.setdefault((demand, constraint), Entry(groups, demand, constraint))
