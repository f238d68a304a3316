"""A forest after many changes equals a new forest, and costs in proportion to the changes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from roost.search.forest.forest import Forest
from roost.search.forest.rows import (
    NO_PARENT,
    ForestRows,
    IntColumn,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
    column,
)
from roost.search.forest.vocabulary import Vocabulary

TREE_PROVIDERS = 7
CLASSES = 3
VOCABULARY = Vocabulary.of({f"CLASS_{id_}": id_ for id_ in range(CLASSES)}, {})
NO_VALUES: IntColumn = column([])
NO_USAGE = UsageRows(NO_VALUES, NO_VALUES, NO_VALUES)
CLOUD_PER_CHANGE = 5


def trees(first_id: int, count: int, usages: UsageRows = NO_USAGE, total: int = 100) -> ForestRows:
    """So many providers in trees of seven, each with an inventory of every class."""
    ids = np.arange(first_id, first_id + count, dtype=np.int64)
    root_ids = first_id + (ids - first_id) // TREE_PROVIDERS * TREE_PROVIDERS
    parent_ids = np.where(ids == root_ids, NO_PARENT, root_ids)
    uuids = [b"%08x-0000-4000-8000-000000000000" % id_ for id_ in ids.tolist()]
    owners, class_ids = np.repeat(ids, CLASSES), np.tile(np.arange(CLASSES), count)
    ones = np.ones(len(owners), np.int64)
    return ForestRows(
        ProviderRows(ids, uuids, uuids, parent_ids, root_ids),
        InventoryRows(
            owners, class_ids, ones * total, ones * 0, ones, ones * total, ones, ones.astype(float)
        ),
        usages,
        MembershipRows(NO_VALUES, []),
        MembershipRows(NO_VALUES, []),
    )


def usages_of(provider_ids: Iterable[int]) -> UsageRows:
    """Every third of these providers is free; the rest is used in two classes."""
    used = [
        (id_, class_id, 1 + id_ % 50)
        for id_ in provider_ids
        if id_ % 3
        for class_id in (0, CLASSES - 1)
    ]
    return UsageRows(*column(used or np.empty((0, 3))).T)


def contents(forest: Forest) -> dict[int, list[tuple[int, int, int, int]]]:
    """Class, capacity, used and room of every inventory, by provider."""
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    for block in forest.blocks:
        for class_id, inventory in block.inventories.items():
            columns = (inventory.capacity, inventory.used, inventory.room)
            amounts = zip(*(each.tolist() for each in columns), strict=True)
            ids = block.ids[inventory.indexes].tolist()
            for id_, (capacity, used, room) in zip(ids, amounts, strict=True):
                found.setdefault(id_, []).append((class_id, capacity, used, room))
    return {id_: sorted(found[id_]) for id_ in sorted(found)}


def some_ids(count: int, of: int) -> set[int]:
    chance = np.random.default_rng(count)
    return {id_ + 1 for id_ in chance.choice(of, count, replace=False).tolist()}


@pytest.mark.parametrize("count", [1, 2, 16, 17, 300, 5000])
def test_usages_equal_those_of_a_new_forest(count: int) -> None:
    size = 6_000
    all_ids = range(1, size + 1)
    before = Forest.of(trees(1, size, usages_of(all_ids)), VOCABULARY)
    changed = some_ids(count, size)
    # Half of the changed providers are free afterwards.
    kept = {id_ for id_ in changed if id_ % 2}
    after = before.with_all_usages(usages_of(kept), {*changed, size + 500})
    expected = usages_of(id_ for id_ in all_ids if id_ in kept or id_ not in changed)
    assert contents(after) == contents(Forest.of(trees(1, size, expected), VOCABULARY))
    assert contents(before) == contents(Forest.of(trees(1, size, usages_of(all_ids)), VOCABULARY))


@pytest.mark.parametrize("count", [TREE_PROVIDERS, 50 * TREE_PROVIDERS])
def test_trees_are_replaced_dropped_and_added(count: int) -> None:
    size = 2_000 * TREE_PROVIDERS
    before = Forest.of(trees(1, size), VOCABULARY)
    first_gone = 1 + 1000 * TREE_PROVIDERS
    gone = list(range(first_gone, first_gone + count, TREE_PROVIDERS))
    # The first of these trees replaces an old tree, the rest is new.
    first_new = 1 + size - TREE_PROVIDERS
    after = before.with_trees(trees(first_new, count, total=50), gone)
    expected = contents(before) | contents(Forest.of(trees(first_new, count, total=50), VOCABULARY))
    for id_ in range(first_gone, first_gone + count):
        del expected[id_]
    assert contents(after) == expected


def test_a_new_root_with_the_id_of_a_child_keeps_the_tree_of_the_child() -> None:
    before = Forest.of(trees(1, 2 * TREE_PROVIDERS), VOCABULARY)
    after = before.with_trees(trees(2, 1), [])
    assert after.provider_count == 2 * TREE_PROVIDERS + 1


def cpu_seconds(work: Callable[[], object]) -> float:
    """The fastest of three runs, because other processes slow some runs down."""
    seconds = []
    gc.disable()
    try:
        for _ in range(3):
            began = time.thread_time()
            work()
            seconds.append(time.thread_time() - began)
    finally:
        gc.enable()
    return min(seconds)


def usage_seconds(count: int) -> float:
    forest = Forest.of(trees(1, CLOUD_PER_CHANGE * count), VOCABULARY)
    changed = some_ids(count, CLOUD_PER_CHANGE * count)
    usages = usages_of(changed)
    return cpu_seconds(lambda: forest.with_all_usages(usages, changed))


def tree_seconds(count: int) -> float:
    forest = Forest.of(trees(1, CLOUD_PER_CHANGE * count), VOCABULARY)
    replaced = trees(1, count)
    return cpu_seconds(lambda: forest.with_trees(replaced, forest.root_ids_of(range(1, count))))


def test_four_times_as_many_claims_take_about_four_times_as_long() -> None:
    # It would take sixteen times as long if every block and class went through all usages.
    assert usage_seconds(40_000) < 10 * usage_seconds(10_000)


@pytest.mark.slow
def test_four_times_as_many_changed_trees_take_about_four_times_as_long() -> None:
    assert tree_seconds(160_000) < 10 * tree_seconds(40_000)
