"""Forests for tests of the search, without a database."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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

CLASSES = {"VCPU": 0, "MEMORY_MB": 1, "SRIOV_NET_VF": 8}


class Node(NamedTuple):
    """A provider of a tree: the offset of its parent, and its totals by resource class."""

    parent: int | None
    totals: dict[str, int]


def forest_of(trees: list[list[Node]]) -> Forest:
    """The forest of these trees; the uuid of a provider is its position in the list."""
    return Forest.of(rows_of(trees), Vocabulary.of(CLASSES, {}))


def rows_of(trees: list[list[Node]]) -> ForestRows:
    """The rows of these trees; the id of a provider is its position in the list, from 1."""
    none = column([])
    nodes = [node for tree in trees for node in tree]
    sizes = [len(tree) for tree in trees]
    # The id of each node's root. The id of a parent is this id plus the parent's offset.
    roots = np.repeat(np.cumsum([1, *sizes[:-1]]), sizes)
    inventories = [
        (id_, CLASSES[name], total)
        for id_, node in enumerate(nodes, 1)
        for name, total in node.totals.items()
    ]
    ids, classes, totals = (column(list(values)) for values in zip(*inventories, strict=True))
    one = np.ones(len(inventories), np.int64)
    parents = [
        NO_PARENT if node.parent is None else root + node.parent
        for node, root in zip(nodes, roots.tolist(), strict=True)
    ]
    return ForestRows(
        ProviderRows(
            column(range(1, len(nodes) + 1)),
            [f"{position:036d}".encode() for position in range(len(nodes))],
            [f"provider {position}".encode() for position in range(len(nodes))],
            column(parents),
            column(roots),
        ),
        InventoryRows(
            ids,
            classes,
            totals,
            one * 0,
            one,
            one * 2**31,
            one,
            allocation_ratio=np.ones(len(inventories)),
        ),
        UsageRows(none, none, none),
        MembershipRows(none, []),
        MembershipRows(none, []),
    )
