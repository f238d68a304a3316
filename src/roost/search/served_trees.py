"""Trees that are served: a search leaves out those for which an earlier search has a candidate."""

from __future__ import annotations

from collections.abc import Iterator

from roost.search.batches import Batch
from roost.search.scan import AlikeTrees


class ServedTrees:
    """The trees for which earlier searches of one request have a candidate."""

    def __init__(self) -> None:
        # By block number, the tree numbers.
        self._earlier: dict[int, set[int]] = {}
        self._now: dict[int, set[int]] = {}

    def begin_search(self) -> None:
        """The trees of the search before count as served from now on."""
        for block_number, tree_numbers in self._now.items():
            self._earlier.setdefault(block_number, set()).update(tree_numbers)
        self._now = {}

    def without_served(self, scanned: Iterator[AlikeTrees]) -> Iterator[AlikeTrees]:
        """The trees that no earlier search serves."""
        for alike in scanned:
            served = self._earlier.get(alike.block_number)
            if served is None:
                yield alike
                continue
            left = [number for number in alike.tree_numbers if number not in served]
            if left:
                yield alike._replace(tree_numbers=left)

    def noting(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; their trees are noted."""
        for batch in batches:
            self._now.setdefault(batch.block_number, set()).update(batch.tree_numbers)
            yield batch
