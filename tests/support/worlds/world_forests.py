"""Forests of worlds, without a database: of a text in notation, or of the oracle's providers."""

from __future__ import annotations

from roost.search.columns import column
from roost.search.forest import Forest
from roost.search.rows import (
    NO_PARENT,
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
)
from roost.search.vocabulary import Vocabulary
from support.scenarios.oracle import SHARING, Inventory, Provider, World
from support.worlds.notation import (
    CUSTOM_CLASSES,
    CUSTOM_TRAITS,
    aggregate_uuid,
    parse_world,
    provider_uuid,
)

CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "VGPU", *CUSTOM_CLASSES)
TRAITS = (SHARING, "HW_CPU_X86_AVX", *CUSTOM_TRAITS)
_CLASS_IDS = {name: number for number, name in enumerate(CLASSES)}
_TRAIT_IDS = {name: number for number, name in enumerate(TRAITS, 1)}


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


def world_forest(world: World) -> Forest:
    """The forest of a world; the ids follow the order of the providers."""
    ids = {uuid: number for number, uuid in enumerate(world.providers, 1)}
    inventories = [
        (ids[uuid], _CLASS_IDS[name], inventory)
        for uuid, provider in world.providers.items()
        for name, inventory in provider.inventories.items()
    ]
    usages = [
        (ids[uuid], _CLASS_IDS[name], used)
        for uuid, provider in world.providers.items()
        for name, used in provider.used.items()
        if used
    ]
    rows = ForestRows(
        ProviderRows(
            column(list(ids.values())),
            [uuid.encode() for uuid in ids],
            column(
                [
                    NO_PARENT if provider.parent is None else ids[provider.parent]
                    for provider in world.providers.values()
                ]
            ),
            column([ids[world.root(uuid)] for uuid in ids]),
        ),
        InventoryRows(
            column([id_ for id_, _, _ in inventories]),
            column([class_id for _, class_id, _ in inventories]),
            column([its.total for _, _, its in inventories]),
            column([its.reserved for _, _, its in inventories]),
            column([its.min_unit for _, _, its in inventories]),
            column([its.max_unit for _, _, its in inventories]),
            column([its.step_size for _, _, its in inventories]),
            allocation_ratio=column([its.allocation_ratio for _, _, its in inventories], float),
        ),
        UsageRows(
            column([id_ for id_, _, _ in usages]),
            column([class_id for _, class_id, _ in usages]),
            column([used for _, _, used in usages]),
        ),
        _memberships(
            {
                ids[uuid]: sorted(str(_TRAIT_IDS[name]) for name in provider.traits)
                for uuid, provider in world.providers.items()
            }
        ),
        _memberships(
            {ids[uuid]: sorted(provider.aggregates) for uuid, provider in world.providers.items()}
        ),
    )
    return Forest.of(rows, Vocabulary.of(_CLASS_IDS, _TRAIT_IDS))


def _memberships(members: dict[int, list[str]]) -> MembershipRows:
    having = {id_: names for id_, names in members.items() if names}
    return MembershipRows(column(list(having)), [",".join(names) for names in having.values()])
