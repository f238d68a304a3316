"""Resource classes and traits that have to be known to the server before they can be used."""

from __future__ import annotations

from collections.abc import Iterable

from roost.client.reporting.placement import Placement
from roost.model.identifiers import is_custom


class Vocabulary:
    """Makes names known to the server, and remembers which ones are.

    All names of a flush are asked for together, and only those that nobody asked for before.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._classes: set[str] = set()
        self._traits: set[str] = set()

    def ensure_classes(self, names: Iterable[str]) -> None:
        """Create those of these resource classes that the server does not know."""
        missing = {name for name in names if is_custom(name)} - self._classes
        if not missing:
            return
        self._classes |= self._placement.known_resource_classes()
        for name in sorted(missing - self._classes):
            self._placement.create_resource_class(name)
            self._classes.add(name)

    def ensure_traits(self, names: Iterable[str]) -> None:
        """Create those of these traits that the server does not know."""
        missing = set(names) - self._traits
        if not missing:
            return
        self._traits |= self._placement.known_traits(missing)
        for name in sorted(missing - self._traits):
            self._placement.create_trait(name)
            self._traits.add(name)

    def forget(self) -> None:
        """Ask again next time: somebody may have deleted a name that was known."""
        self._classes.clear()
        self._traits.clear()
