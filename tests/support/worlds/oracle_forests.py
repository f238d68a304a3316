"""Forests for the search out of worlds of the oracle, without a database."""

from __future__ import annotations

from roost.search.forest.forest import Forest
from roost.search.forest.rows import (
    NO_PARENT,
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
    column,
)
from roost.search.forest.vocabulary import Vocabulary
from support.scenarios.oracle import SHARING, World
from support.scenarios.random_clouds import CLASSES, TRAITS

CLASS_IDS = {name: number for number, name in enumerate((*CLASSES, "SRIOV_NET_VF"))}
TRAIT_IDS = {name: number for number, name in enumerate((SHARING, *TRAITS), 1)}


def forest_of_world(world: World) -> Forest:
    """The forest with the providers of a world."""
    ids = {uuid: id_ for id_, uuid in enumerate(world.providers, 1)}
    providers = list(world.providers.items())
    inventories = [
        (ids[uuid], CLASS_IDS[name], inventory, provider.used.get(name, 0))
        for uuid, provider in providers
        for name, inventory in provider.inventories.items()
    ]
    used = [(id_, class_id, amount) for id_, class_id, _, amount in inventories if amount]

    def fields(name: str) -> list[float]:
        return [getattr(inventory, name) for _, _, inventory, _ in inventories]

    rows = ForestRows(
        ProviderRows(
            column(list(ids.values())),
            [uuid.encode() for uuid in ids],
            [uuid.encode() for uuid in ids],
            column([ids[its.parent] if its.parent else NO_PARENT for _, its in providers]),
            column([ids[world.root(uuid)] for uuid in ids]),
        ),
        InventoryRows(
            column([id_ for id_, _, _, _ in inventories]),
            column([class_id for _, class_id, _, _ in inventories]),
            column(fields("total")),
            column(fields("reserved")),
            column(fields("min_unit")),
            column(fields("max_unit")),
            column(fields("step_size")),
            allocation_ratio=column(fields("allocation_ratio"), float),
        ),
        UsageRows(*(column([row[place] for row in used]) for place in range(3))),
        MembershipRows(
            column([ids[uuid] for uuid, its in providers if its.traits]),
            [
                ",".join(str(TRAIT_IDS[name]) for name in its.traits)
                for _, its in providers
                if its.traits
            ],
        ),
        MembershipRows(
            column([ids[uuid] for uuid, its in providers if its.aggregates]),
            [",".join(its.aggregates) for _, its in providers if its.aggregates],
        ),
    )
    return Forest.of(rows, Vocabulary.of(CLASS_IDS, TRAIT_IDS))
