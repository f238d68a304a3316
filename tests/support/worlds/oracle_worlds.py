"""Worlds of the oracle out of texts in notation."""

from __future__ import annotations

from support.scenarios.oracle import Inventory, Provider, World
from support.worlds.notation import aggregate_uuid, parse_world, provider_uuid


def oracle_world(text: str) -> World:
    """The world of a text in notation, as the oracle takes it."""
    return World(
        {
            provider_uuid(note.name): Provider(
                parent=None if note.parent is None else provider_uuid(note.parent),
                inventories={
                    # The oracle's fields have the names of the API.
                    name: Inventory(**inventory.fields)  # type: ignore[arg-type]  # ints and floats
                    for name, inventory in note.inventories.items()
                },
                used={name: sum(its.used) for name, its in note.inventories.items()},
                traits=frozenset(note.traits),
                aggregates=frozenset(map(aggregate_uuid, note.aggregates)),
            )
            for note in parse_world(text)
        }
    )
