"""The order of candidates, as the operator configures it or a client asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from roost.search.ranking import Ranking


@dataclass(frozen=True, slots=True)
class CandidateOrder:
    """In which order candidates come, and how many at most."""

    # The search looks for no more than these. `None`: for all of them.
    maximum: int | None = None
    # All candidates of one tree before the next tree, instead of one of each tree in every round.
    depth_first: bool = False
    shuffled: bool = False
    # The trees that a client prefers come first, and of each tree the candidates that it prefers.
    ranking: Ranking | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether a search without a limit can hand candidates out while it finds them."""
        return self.maximum is None and not self.shuffled and self.ranking is None
