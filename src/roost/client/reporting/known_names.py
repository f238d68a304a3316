"""The resource classes and traits that the server knows."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from roost.client.placement import Placement
from roost.model.identifiers import is_custom


class KnownNames:
    """Creates names that the server does not know, and remembers those that it knows.

    One request asks for all new names of a flush. A name that is known is not asked for again.
    Reporters in several threads may share the names: one thread at a time asks and creates.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._classes: set[str] = set()
        self._traits: set[str] = set()
        self._lock = Lock()

    def ensure_classes(self, names: Iterable[str]) -> None:
        """Create the resource classes among these that the server does not know."""
        with self._lock:
            missing = {name for name in names if is_custom(name)} - self._classes
            if not missing:
                return
            self._classes |= self._placement.known_resource_classes()
            for name in sorted(missing - self._classes):
                self._placement.create_resource_class(name)
                self._classes.add(name)

    def ensure_traits(self, names: Iterable[str]) -> None:
        """Create the traits among these that the server does not know."""
        with self._lock:
            missing = set(names) - self._traits
            if not missing:
                return
            self._traits |= self._placement.known_traits(missing)
            for name in sorted(missing - self._traits):
                self._placement.create_trait(name)
                self._traits.add(name)

    def forget(self) -> None:
        """Ask for all names again: another client may have deleted one."""
        with self._lock:
            self._classes.clear()
            self._traits.clear()
