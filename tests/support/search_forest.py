"""Forests to search in, made without a database."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roost.search.forest import Forest
from roost.search.rows import (
    NO_PARENT,
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
    Vocabulary,
    column,
)

CLASSES = {"VCPU": 0, "MEMORY_MB": 1, "SRIOV_NET_VF": 8}


class Node(NamedTuple):
    """A provider of a tree: the number of its parent, and what it has."""

    parent: int | None
    totals: dict[str, int]


def forest_of(trees: list[list[Node]]) -> Forest:
    """The forest of these trees; uuids count the providers."""
    nobody = column([])
    nodes = [node for tree in trees for node in tree]
    sizes = [len(tree) for tree in trees]
    # The id of each node's root, from which the places in its tree count.
    roots = np.repeat(np.cumsum([1, *sizes[:-1]]), sizes)
    stock = [
        (id_, CLASSES[name], total)
        for id_, node in enumerate(nodes, 1)
        for name, total in node.totals.items()
    ]
    ids, classes, totals = (column(list(values)) for values in zip(*stock, strict=True))
    one = np.ones(len(stock), np.int64)
    parents = [
        NO_PARENT if node.parent is None else root + node.parent
        for node, root in zip(nodes, roots.tolist(), strict=True)
    ]
    rows = ForestRows(
        ProviderRows(
            column(range(1, len(nodes) + 1)),
            [f"{number:036d}".encode() for number in range(len(nodes))],
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
            allocation_ratio=np.ones(len(stock)),
        ),
        UsageRows(nobody, nobody, nobody),
        MembershipRows(nobody, []),
        MembershipRows(nobody, []),
    )
    return Forest.of(rows, Vocabulary.of(CLASSES, {}))
