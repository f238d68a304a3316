"""A declaration: the providers that one writer says there are, and what he says about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

InventoryFields = Mapping[str, int | float]
"""Fields of one inventory as the API names them: `total`, and whichever others matter."""


@dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """One provider as its writer wants it. `parent` is a name of the same declaration."""

    name: str
    parent: str | None = None
    uuid: str | None = None
    inventories: Mapping[str, InventoryFields] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Declaration:
    """Providers by name, parents before their children; several roots are several trees."""

    providers: tuple[DeclaredProvider, ...]

    @property
    def roots(self) -> tuple[DeclaredProvider, ...]:
        """The providers without parent."""
        return tuple(provider for provider in self.providers if provider.parent is None)

    def tree(self, root: str) -> Declaration:
        """The part of it that hangs below one root, the root first."""
        return Declaration(tuple(self._below(root)))

    def _below(self, root: str) -> Iterator[DeclaredProvider]:
        members = {root}
        for provider in self.providers:
            if provider.name == root or provider.parent in members:
                members.add(provider.name)
                yield provider
