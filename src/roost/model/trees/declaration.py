"""A declaration: providers with the inventories, traits and aggregates that they shall have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roost.model.identifiers import canonical_uuid, is_uuid

InventoryFields = Mapping[str, int | float]
"""Fields of one inventory as the API names them; `total` is required."""


@dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """One declared provider. `parent` is a name in the same declaration."""

    name: str
    parent: str | None = None
    uuid: str | None = None
    inventories: Mapping[str, InventoryFields] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a declared provider has the name {self.name!r}: give it a text")
        for resource_class, fields in self.inventories.items():
            if not isinstance(fields, Mapping):
                raise ValueError(
                    f"inventory {resource_class} of {self.name} is {fields!r}: write a mapping "
                    'of its fields, such as {"total": 16}'
                )
        object.__setattr__(self, "traits", self._names("traits"))
        # The server spells uuids in one way, and comparisons are of texts.
        if self.uuid is not None:
            object.__setattr__(self, "uuid", _canonical(self.uuid))
        aggregates = frozenset(map(_canonical, self._names("aggregates")))
        object.__setattr__(self, "aggregates", aggregates)

    def _names(self, field_name: str) -> frozenset[str]:
        """The names of a field; a text would count as the set of its letters."""
        names: object = getattr(self, field_name)
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ValueError(
                f"{field_name} of {self.name} are {names!r}: write a set of names, such as "
                f"frozenset({{{names!r}}})"
            )
        return frozenset(names)


@dataclass(frozen=True, slots=True)
class UnreadProviders:
    """Providers that may exist, but that the driver cannot read at present.

    A driver knows the names of some of them, and of others only how their names begin.

    >>> UnreadProviders(prefixes=frozenset({"host_disk_"})).covers("host_disk_wwn-5")
    True
    """

    names: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def covers(self, name: str) -> bool:
        """Whether a provider of this name may exist unread."""
        return name in self.names or name.startswith(tuple(self.prefixes))


@dataclass(frozen=True, slots=True)
class Declaration:
    """Providers by name, parents before their children; several roots are several trees.

    Providers that are `unread` and not declared stay as the server has them.
    """

    providers: tuple[DeclaredProvider, ...]
    unread: UnreadProviders = UnreadProviders()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for provider in self.providers:
            if provider.name in seen:
                raise ValueError(f"provider {provider.name} is declared twice")
            if provider.parent is not None and provider.parent not in seen:
                raise ValueError(
                    f"provider {provider.name} has the parent {provider.parent}, which is not "
                    "declared before it: declare parents before their children"
                )
            seen.add(provider.name)

    @property
    def roots(self) -> tuple[DeclaredProvider, ...]:
        """The providers without parent."""
        return tuple(provider for provider in self.providers if provider.parent is None)

    def trees(self) -> dict[str, Declaration]:
        """The trees by the names of their roots, each with its root first."""
        root_of: dict[str, str] = {}
        members: dict[str, list[DeclaredProvider]] = {}
        for provider in self.providers:
            root = provider.name if provider.parent is None else root_of[provider.parent]
            root_of[provider.name] = root
            members.setdefault(root, []).append(provider)
        return {
            root: Declaration(tuple(providers), self.unread) for root, providers in members.items()
        }


def _canonical(uuid: str) -> str:
    """The usual spelling of a uuid; the server refuses what is none, with a sentence."""
    return canonical_uuid(uuid) if is_uuid(uuid) else uuid
