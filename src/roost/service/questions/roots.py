"""The roots that a client asks for: names become ids."""

from __future__ import annotations

from dataclasses import dataclass

from roost.search.forest.vocabulary import Vocabulary
from roost.search.roots import RootFilter
from roost.service.errors import Invalid


@dataclass(frozen=True, slots=True)
class AskedRoots:
    """Which roots a client wants to see. `None` leaves no root out."""

    name: str | None = None
    trait: str | None = None
    aggregate: str | None = None

    def filter(self, vocabulary: Vocabulary) -> RootFilter:
        """The filter; `Invalid` for an unknown trait."""
        trait_id = None
        if self.trait is not None:
            trait_id = vocabulary.trait_ids.get(self.trait)
            if trait_id is None:
                raise Invalid(f"No such trait(s): {self.trait}.")
        return RootFilter(self.name, trait_id, self.aggregate)
