"""What an owner owns of one provider, as the server records it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Fields: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class OwnedParts:
    """The parts of a provider that an owner has put there; if it `created` it, the provider too.

    Of an inventory the owner owns the fields that it declared: resource class -> names of fields.
    """

    created: bool = False
    inventories: Mapping[str, Fields] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.created or self.inventories or self.traits or self.aggregates)

    def among(self, inventories: Set[str], traits: Set[str], aggregates: Set[str]) -> OwnedParts:
        """Those of the parts that the provider still has."""
        return OwnedParts(
            self.created,
            {name: self.inventories[name] for name in self.inventories if name in inventories},
            self.traits & traits,
            self.aggregates & aggregates,
        )

    def united(self, second: OwnedParts) -> OwnedParts:
        """These parts and further ones."""
        nothing: Fields = frozenset()
        return OwnedParts(
            self.created or second.created,
            {
                name: self.inventories.get(name, nothing) | second.inventories.get(name, nothing)
                for name in self.inventories.keys() | second.inventories.keys()
            },
            self.traits | second.traits,
            self.aggregates | second.aggregates,
        )

    def as_json(self) -> dict[str, Any]:
        """The parts as a JSON value."""
        return {
            "created": self.created,
            "inventories": {
                name: sorted(fields) for name, fields in sorted(self.inventories.items())
            },
            "traits": sorted(self.traits),
            "aggregates": sorted(self.aggregates),
        }

    def to_text(self) -> str:
        """The parts as a text; equal parts have equal texts.

        >>> OwnedParts(True, {"VCPU": frozenset({"total"})}).to_text()
        '{"created": true, "inventories": {"VCPU": ["total"]}}'
        """
        return json.dumps({name: value for name, value in self.as_json().items() if value})

    @classmethod
    def parse(cls, text: str) -> OwnedParts:
        """The parts in such a text.

        >>> OwnedParts.parse('{"traits": ["CUSTOM_GOLD"]}').traits
        frozenset({'CUSTOM_GOLD'})
        """
        return cls.of_json(json.loads(text))

    @classmethod
    def of_json(cls, body: Mapping[str, Any]) -> OwnedParts:
        """The parts in a JSON value. A part that is left out is empty."""
        return cls(
            bool(body.get("created")),
            {name: frozenset(fields) for name, fields in body.get("inventories", {}).items()},
            frozenset(body.get("traits", ())),
            frozenset(body.get("aggregates", ())),
        )


NOTHING = OwnedParts()
