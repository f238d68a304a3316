"""Consumers as a list: by type, owner, place, age and size; and one consumer with all it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sqlalchemy import Connection

from roost.model.consumers import Consumer, ConsumerFilter, ConsumerHolding, SizeMark
from roost.search.forest.forest import Forest
from roost.service.errors import ErrorCode, NotFound
from roost.store.rows import consumers as rows

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class HoldingConsumer:
    """A consumer, and what it holds from each provider."""

    consumer: Consumer
    holdings: Sequence[ConsumerHolding]

    @property
    def resources(self) -> dict[str, int]:
        """What it holds of each class, from all providers together."""
        sums: dict[str, int] = {}
        for holding in self.holdings:
            for name, used in holding.resources.items():
                sums[name] = sums.get(name, 0) + used
        return sums


def list_oldest_consumers(
    connection: Connection, wanted: ConsumerFilter, after_id: int, length: int
) -> list[tuple[int, HoldingConsumer]]:
    """The first consumers after an id, oldest first, each with its id."""
    return _with_holdings(connection, rows.list_oldest(connection, wanted, after_id, length))


def list_largest_consumers(
    connection: Connection,
    wanted: ConsumerFilter,
    capacities: Mapping[int, int],
    after: SizeMark | None,
    length: int,
) -> list[tuple[SizeMark, HoldingConsumer]]:
    """The first consumers after a mark, largest first, each with its mark."""
    found = rows.list_largest(connection, wanted, capacities, after, length)
    return _with_holdings(connection, found)


def get_consumer(connection: Connection, uuid: str) -> HoldingConsumer:
    """The consumer with this uuid."""
    consumer = rows.find_consumer(connection, uuid)
    if consumer is None:
        raise NotFound(
            f"No consumer has the uuid {uuid[:200]!r}. `roost consumer list` lists those that "
            "exist; a consumer goes with its last allocation.",
            ErrorCode.NO_SUCH_CONSUMER,
        )
    holdings = rows.holdings_of(connection, [consumer.uuid])
    return HoldingConsumer(consumer, holdings.get(consumer.uuid, ()))


def capacities_of(forest: Forest) -> dict[int, int]:
    """The capacity of the whole cloud, by the id of the resource class."""
    capacities: dict[int, int] = {}
    for block in forest.blocks:
        for class_id, inventory in block.inventories.items():
            # As floats: absurd allocation ratios would exceed 64 bits.
            total = int(inventory.capacity.clip(min=0).sum(dtype=np.float64))
            capacities[class_id] = capacities.get(class_id, 0) + total
    return capacities


def subtree_ids(forest: Forest, uuid: str) -> Collection[int]:
    """The ids of a provider and of all providers below it; none if it has just been deleted."""
    found = forest.find_provider(uuid)
    if found is None:
        return ()
    block = forest.blocks[found.block_number]
    ids: list[int] = block.ids[block.subtree(found.provider_index)].tolist()
    return ids


def _with_holdings(
    connection: Connection, found: Sequence[tuple[M, Consumer]]
) -> list[tuple[M, HoldingConsumer]]:
    holdings = rows.holdings_of(connection, [consumer.uuid for _, consumer in found])
    return [
        (mark, HoldingConsumer(consumer, holdings.get(consumer.uuid, ())))
        for mark, consumer in found
    ]
