"""Random clouds, and random writes that a service must accept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar
from uuid import UUID, uuid5

from hypothesis import strategies as st

from support.scenarios.cloud import (
    Claim,
    Cloud,
    Create,
    Delete,
    Move,
    Release,
    SetAggregates,
    SetInventories,
    SetTraits,
    Write,
)
from support.scenarios.oracle import SHARING, Inventory
from support.worlds.notation import aggregate_uuid, provider_uuid

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GOLD")
TRAITS = ("HW_CPU_X86_AVX", "CUSTOM_T1", "CUSTOM_T2", "CUSTOM_T3")
AGGREGATES = tuple(map(aggregate_uuid, "ABC"))
PROVIDERS = tuple(provider_uuid(f"P{number}") for number in range(32))
CONSUMERS = tuple(str(uuid5(UUID(PROVIDERS[0]), f"consumer {number}")) for number in range(6))
AMOUNTS = (1, 2, 3, 4, 6, 8)
DEPTH = 4
MAX_PROVIDERS = 14

Draw: TypeAlias = Any
T = TypeVar("T")


# One strategy for each range: to make a strategy takes longer than to draw from it.
_below = lru_cache(lambda bound: st.integers(0, bound - 1))


def happens(draw: Draw, percent: int) -> bool:
    """True in `percent` of 100 cases."""
    return bool(draw(_below(100)) >= 100 - percent)


def choose(draw: Draw, pool: Sequence[T]) -> T:
    """One item of the pool; simple examples take the first."""
    index: int = draw(_below(len(pool)))
    return pool[index]


def shuffled(draw: Draw, items: Sequence[T]) -> list[T]:
    """The items in a random order."""
    left = list(items)
    return [left.pop(draw(_below(len(left)))) for _ in items]


def some(draw: Draw, pool: Sequence[T], percent: int) -> list[T]:
    """The items of the pool, each with about this probability."""
    # Four bits for each, drawn at once.
    drawn = draw(_below(16 ** len(pool))) if pool else 0
    bits = [drawn >> 4 * number & 15 for number in range(len(pool))]
    return [item for item, its in zip(pool, bits, strict=True) if its >= 16 - 16 * percent / 100]


def inventory(draw: Draw) -> Inventory:
    if not happens(draw, 30):
        return Inventory(choose(draw, [8, 4, 16, 2, 1]))
    total = choose(draw, [8, 12, 16, 20])
    return Inventory(
        total=total,
        reserved=choose(draw, [0, 0, 1, 5, total]),
        min_unit=choose(draw, [1, 1, 1, 2, 3]),
        max_unit=choose(draw, [2_147_483_647, 8, 4, 3]),
        step_size=choose(draw, [1, 1, 1, 2, 3]),
        # Double precision cannot represent the last two ratios exactly.
        allocation_ratio=choose(draw, [1.0, 1.5, 2.0, 0.5, 0.29, 1.1]),
    )


def inventories(draw: Draw) -> dict[str, Inventory]:
    return {name: inventory(draw) for name in some(draw, CLASSES, 60)}


def traits_of(draw: Draw, sharing: int) -> frozenset[str]:
    """Some traits, with the trait of sharing providers at this probability."""
    shares = [SHARING] if sharing and happens(draw, sharing) else []
    return frozenset(some(draw, TRAITS, 35) + shares)


def furnishing(draw: Draw, uuid: str, sharing: int) -> list[Write]:
    """The writes that equip a new provider, which is a sharing one at this probability."""
    writes: list[Write] = []
    if given := inventories(draw):
        writes.append(SetInventories(uuid, given))
    traits = traits_of(draw, sharing)
    if traits:
        writes.append(SetTraits(uuid, traits))
    aggregates = some(draw, AGGREGATES, 60 if SHARING in traits else 30)
    if aggregates:
        writes.append(SetAggregates(uuid, frozenset(aggregates)))
    return writes


@st.composite
def foundings(draw: Draw) -> list[Write]:
    """The writes that make a cloud in an empty service."""
    writes: list[Write] = []
    cloud = Cloud()
    trees = choose(draw, [1, 2, 3, 4])
    shares = 0
    for number in range(trees + choose(draw, [0, 1, 2])):
        # The last trees mostly have sharing providers, as roots or as children.
        members: list[tuple[str, int]] = []
        sizes = [1, 2, 3, 4, 6] if number < trees else [1, 1, 2]
        for _ in range(choose(draw, sizes)):
            if len(cloud.providers) == MAX_PROVIDERS:
                break
            uuid = PROVIDERS[len(cloud.providers)]
            parent, depth = choose(draw, members) if members else (None, 0)
            if depth < DEPTH - 1:
                members.append((uuid, depth + 1))
            likely = (5 if number < trees else 80) if shares < 3 else 0
            made = [Create(uuid, parent), *furnishing(draw, uuid, likely)]
            for write in made:
                cloud = write.apply(cloud)
            shares += cloud.providers[uuid].sharing
            writes += made
    for _ in range(choose(draw, [0, 1, 2, 3])):
        claim = draw_claim(draw, cloud)
        if claim is not None:
            cloud = claim.apply(cloud)
            writes.append(claim)
    return writes


def draw_claim(draw: Draw, cloud: Cloud) -> Claim | None:
    """A claim that fits the free capacity. It may replace an earlier claim of its consumer."""
    consumer = choose(draw, CONSUMERS)
    world = Release(consumer).apply(cloud).world()
    offers = [
        (uuid, name, amount)
        for uuid, provider in world.providers.items()
        for name in provider.inventories
        for amount in AMOUNTS
        if provider.has_room(name, amount)
    ]
    if not offers:
        return None
    holding: dict[str, dict[str, int]] = {}
    for _ in range(choose(draw, [1, 2, 3])):
        uuid, name, amount = choose(draw, offers)
        holding.setdefault(uuid, {})[name] = amount
    return Claim(consumer, holding)


def draw_release(draw: Draw, cloud: Cloud) -> Write | None:
    held = sorted(cloud.holdings)
    return Release(choose(draw, held)) if held else None


def draw_inventories(draw: Draw, cloud: Cloud) -> Write | None:
    uuid = choose(draw, list(cloud.providers))
    given = inventories(draw)
    # The service refuses to remove an inventory that is in use.
    for name in cloud.used(uuid):
        given.setdefault(name, inventory(draw))
    return SetInventories(uuid, given)


def draw_traits(draw: Draw, cloud: Cloud) -> Write | None:
    uuid = choose(draw, list(cloud.providers))
    return SetTraits(uuid, traits_of(draw, 25))


def draw_aggregates(draw: Draw, cloud: Cloud) -> Write | None:
    uuid = choose(draw, list(cloud.providers))
    return SetAggregates(uuid, frozenset(some(draw, AGGREGATES, 40)))


def draw_create(draw: Draw, cloud: Cloud) -> Write | None:
    unused = [uuid for uuid in PROVIDERS if uuid not in cloud.providers]
    if len(cloud.providers) >= MAX_PROVIDERS:
        return None
    world = cloud.world()
    parents = [uuid for uuid in cloud.providers if len(world.lineage(uuid)) < DEPTH]
    return Create(choose(draw, unused), choose(draw, [None, *parents]))


def draw_delete(draw: Draw, cloud: Cloud) -> Write | None:
    free = [uuid for uuid in cloud.providers if not cloud.children(uuid) and not cloud.used(uuid)]
    # The last provider stays, so that later writes have a provider to change.
    return Delete(choose(draw, free)) if free and len(cloud.providers) > 1 else None


def draw_move(draw: Draw, cloud: Cloud) -> Write | None:
    uuid = choose(draw, list(cloud.providers))
    world = cloud.world()
    lineages = {other: world.lineage(other) for other in cloud.providers}
    height = max(its.index(uuid) + 1 for its in lineages.values() if uuid in its)
    parents = [
        other for other, its in lineages.items() if uuid not in its and len(its) + height <= DEPTH
    ]
    return Move(uuid, choose(draw, [*parents, None]))


DRAWN = (
    draw_inventories,
    draw_claim,
    draw_claim,
    draw_release,
    draw_traits,
    draw_aggregates,
    draw_create,
    draw_delete,
    draw_move,
)


@st.composite
def writes(draw: Draw, cloud: Cloud) -> list[Write]:
    """The writes of one change. A new provider gets its inventories, traits and aggregates."""
    write = choose(draw, DRAWN)(draw, cloud)
    if write is None:
        return []
    if isinstance(write, Create):
        return [write, *furnishing(draw, write.uuid, 20)]
    return [write]
