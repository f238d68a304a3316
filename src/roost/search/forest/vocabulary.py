"""The vocabulary: names of resource classes and traits, and their ids in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of resource classes and traits, both ways."""

    class_ids: Mapping[str, int]
    class_names: Mapping[int, str]
    trait_ids: Mapping[str, int]
    trait_names: Mapping[int, str]

    @classmethod
    def of(cls, classes: Mapping[str, int], traits: Mapping[str, int]) -> Vocabulary:
        """The vocabulary in which names have these ids."""
        return cls(
            class_ids=classes,
            class_names={id_: name for name, id_ in classes.items()},
            trait_ids=traits,
            trait_names={id_: name for name, id_ in traits.items()},
        )
