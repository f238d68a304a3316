"""The environments that the documents of the Placement API draw, as `drawings.toml` has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from roost.demo.world import ProviderSpec, World, read_data
from roost.model.inventory import Inventory


@cache
def drawings() -> Mapping[str, World]:
    """All worlds by name, in the order of the file."""
    return {
        name: World(
            name,
            world["title"],
            tuple(map(_provider, world["providers"])),
            remarks=tuple(world.get("remarks", ())),
        )
        for name, world in read_data("drawings.toml").items()
    }


def _provider(drawn: Mapping[str, Any]) -> ProviderSpec:
    ratios = drawn.get("ratios", {})
    return ProviderSpec(
        drawn["name"],
        drawn.get("parent"),
        inventories=tuple(
            Inventory(name, total, allocation_ratio=ratios.get(name, 1.0))
            for name, total in drawn.get("totals", {}).items()
        ),
        traits=tuple(drawn.get("traits", ())),
        aggregates=tuple(drawn.get("aggregates", ())),
    )
