"""The list of traits in a provider summary, as JSON."""

from __future__ import annotations

import orjson

from roost.search.forest import Forest


class TraitLists:
    """The list of trait names of each set of traits in a forest, made once and kept."""

    def __init__(self, forest: Forest) -> None:
        self._sets = forest.trait_sets
        self._vocabulary = forest.vocabulary
        self._texts: dict[int, bytes] = {}

    def belong_to(self, forest: Forest) -> bool:
        """Whether the forest has the same sets, and its traits have the same names."""
        return self._sets is forest.trait_sets and self._vocabulary is forest.vocabulary

    def of(self, set_number: int) -> bytes:
        """The list for the set with this set number."""
        text = self._texts.get(set_number)
        if text is None:
            names = self._vocabulary.trait_names
            # By id: standard traits before custom ones, as clients have always seen them.
            known = (names.get(id_) for id_ in sorted(self._sets[set_number]))
            text = self._texts[set_number] = orjson.dumps(
                [name for name in known if name is not None]
            )
        return text
