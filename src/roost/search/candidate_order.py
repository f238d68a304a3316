"""The order of candidates, as the operator configures it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CandidateOrder:
    """In which order candidates come, and how many at most."""

    # The search looks for no more than these. `None`: for all of them.
    maximum: int | None = None
    # All candidates of one tree before the next tree, instead of one of each tree in every round.
    depth_first: bool = False
    shuffled: bool = False
