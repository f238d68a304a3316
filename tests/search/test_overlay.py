"""Overlays: a forest with changes, beside the forest that stays as it is."""

from __future__ import annotations

import pytest

from roost.search.forest.forest import Forest
from roost.search.forest.overlay import NotInOverlay, Overlay
from support.worlds.forests import CLASSES, Node, forest_of

VCPU = CLASSES["VCPU"]


def uuid(number: int) -> str:
    return f"{number:036d}"


def small_forest() -> Forest:
    host = [Node(None, {"VCPU": 8}), Node(0, {"VCPU": 4}), Node(1, {"SRIOV_NET_VF": 2})]
    return forest_of([host, host, host])


def capacities(forest: Forest) -> dict[str, int]:
    """The capacity of VCPU by provider."""
    return {
        block.uuids[index].decode(): capacity
        for block in forest.blocks
        for index, capacity in zip(
            block.inventories[VCPU].indexes.tolist(),
            block.inventories[VCPU].capacity.tolist(),
            strict=True,
        )
    }


def test_the_forest_below_stays_as_it_is() -> None:
    forest = small_forest()
    before, sets, tokens = (
        capacities(forest),
        len(forest.trait_sets),
        [block.token for block in forest.blocks],
    )
    overlay = Overlay(forest)
    overlay.drain(uuid(0))
    overlay.change_traits(uuid(1), [7, 8], [])
    overlay.add_trees(uuid(3), 2, empty=True)
    changed = overlay.forest
    assert (capacities(forest), len(forest.trait_sets)) == (before, sets)
    assert [block.token for block in forest.blocks] == tokens
    assert changed.token is not forest.token
    assert changed.trait_sets is not forest.trait_sets
    versions = {version for block in forest.blocks for version in block.tree_versions.tolist()}
    unchanged = {v for block in changed.blocks for v in block.tree_versions.tolist()} & versions
    assert len(unchanged) == 1


def test_claims_alone_copy_no_tables() -> None:
    forest = small_forest()
    overlay = Overlay(forest)
    overlay.use({uuid(0): {"VCPU": 3}, "unknown": {"VCPU": 1}})
    overlay.use({uuid(0): {"VCPU": 1, "MEMORY_MB": 1}}, sign=-1)
    assert overlay.forest.trait_sets is forest.trait_sets
    (block,) = overlay.forest.blocks
    assert block.inventories[VCPU].used.tolist() == [2, 0, 0, 0, 0, 0]


def test_a_change_after_a_claim_keeps_what_the_claim_holds() -> None:
    overlay = Overlay(small_forest())
    overlay.change_inventory(uuid(0), VCPU, {"allocation_ratio": 2.0})
    overlay.use({uuid(0): {"VCPU": 3}})
    overlay.change_inventory(uuid(0), VCPU, {"total": 5})
    assert overlay.inventory(uuid(0), VCPU).used == 3  # type: ignore[union-attr]  # it exists
    assert capacities(overlay.forest)[uuid(0)] == 10
    overlay.change_inventory(uuid(0), VCPU, {"reserved": 1})
    assert capacities(overlay.forest)[uuid(0)] == 8


def test_a_removed_subtree_is_gone_for_later_changes() -> None:
    overlay = Overlay(small_forest())
    assert overlay.remove(uuid(1)) == 2
    with pytest.raises(NotInOverlay):
        overlay.drain(uuid(2))
    assert overlay.tree_size(uuid(0)) == 1
    assert overlay.remove(uuid(0)) == 1
    with pytest.raises(NotInOverlay):
        overlay.tree_size(uuid(0))
    assert set(capacities(overlay.forest)) == set(map(uuid, (3, 4, 6, 7)))
    with pytest.raises(NotInOverlay):
        overlay.remove(uuid(0))


def test_a_tree_may_be_added_and_removed() -> None:
    overlay = Overlay(small_forest())
    (added,) = overlay.add_trees(uuid(1), 1, empty=True)
    assert len(capacities(overlay.forest)) == 8
    assert overlay.remove(added[0]) == 3
    assert len(capacities(overlay.forest)) == 6
