"""ProviderTree.populate_from_iterable adds providers as the server lists them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from roost.client.provider_tree import ProviderTree


def listed(uuid: str, parent: str | None = None, **others: Any) -> dict[str, Any]:
    """A provider as the server lists it; its default name follows from its uuid."""
    return {"uuid": uuid, "name": f"{uuid} name", "parent_provider_uuid": parent, **others}


HOST = [
    listed("host"),
    listed("cell", "host"),
    listed("device", "cell"),
]


@pytest.fixture
def tree() -> ProviderTree:
    """A host with a cell with a device, and another root. The cell and the device have traits."""
    tree = ProviderTree()
    tree.populate_from_iterable([*HOST, listed("storage")])
    tree.update_traits("cell", ["CUSTOM_CELL"], generation=5)
    tree.update_traits("device", ["CUSTOM_DEVICE"], generation=6)
    return tree


def parents(tree: ProviderTree) -> dict[str, str | None]:
    return {uuid: tree.data(uuid).parent_uuid for uuid in tree.get_provider_uuids()}


@pytest.mark.parametrize("empty", [None, [], (), {}])
def test_an_empty_input_changes_nothing(tree: ProviderTree, empty: Any) -> None:
    before = parents(tree)
    tree.populate_from_iterable(empty)
    assert parents(tree) == before


@pytest.mark.parametrize("order", list(permutations(HOST)))
def test_the_input_may_have_any_order(
    order: tuple[dict[str, Any], ...],
) -> None:
    tree = ProviderTree()
    tree.populate_from_iterable(order)
    assert parents(tree) == {"host": None, "cell": "host", "device": "cell"}


def test_siblings_and_roots_keep_the_order_of_the_input() -> None:
    tree = ProviderTree()
    tree.populate_from_iterable(
        [listed("b1", "b"), listed("b"), listed("a2", "a"), listed("a"), listed("a1", "a")]
    )
    assert tree.get_provider_uuids() == ["b", "b1", "a", "a2", "a1"]


def test_the_input_may_be_any_iterable(tree: ProviderTree) -> None:
    tree.populate_from_iterable(iter([listed("new", "host")]))
    assert tree.exists("new")


def test_generation_and_parent_may_be_left_out_and_other_keys_are_ignored() -> None:
    tree = ProviderTree()
    tree.populate_from_iterable(
        [
            {"uuid": "a", "name": "A"},
            listed("b", generation=0, links=[], root_provider_uuid="elsewhere"),
        ]
    )
    assert tree.data("A")[:4] == ("a", "A", None, None)
    assert tree.data("b").generation == 0


@pytest.mark.parametrize(
    ("provider", "missing"), [({"uuid": "a"}, "name"), ({"name": "a"}, "uuid"), ({}, "uuid")]
)
def test_a_provider_without_uuid_or_name_is_refused_and_nothing_changes(
    tree: ProviderTree, provider: dict[str, Any], missing: str
) -> None:
    before = parents(tree)
    with pytest.raises(ValueError, match=f"no {missing}"):
        tree.populate_from_iterable([listed("new"), provider])
    assert parents(tree) == before


def test_a_parent_may_be_in_the_tree_already(tree: ProviderTree) -> None:
    tree.populate_from_iterable([listed("new", "device")])
    assert tree.get_provider_uuids("host") == ["host", "cell", "device", "new"]
    assert tree.data("device").traits == {"CUSTOM_DEVICE"}


def test_an_error_names_missing_parents_and_the_tree_is_unchanged(tree: ProviderTree) -> None:
    before = parents(tree)
    with pytest.raises(ValueError, match=r": missing1, missing2\."):
        tree.populate_from_iterable(
            [listed("cell"), listed("x", "missing1"), listed("y", "cell"), listed("z", "missing2")]
        )
    assert parents(tree) == before
    assert tree.data("cell").traits == {"CUSTOM_CELL"}


def test_a_parent_is_found_by_uuid_only(tree: ProviderTree) -> None:
    with pytest.raises(ValueError, match="host name"):
        tree.populate_from_iterable([listed("x", "host name")])


def test_a_parent_below_a_replaced_provider_is_missing(tree: ProviderTree) -> None:
    before = parents(tree)
    with pytest.raises(ValueError, match=r": device\."):
        tree.populate_from_iterable([listed("cell", "host"), listed("x", "device")])
    assert parents(tree) == before


def test_a_replaced_provider_loses_its_associations(tree: ProviderTree) -> None:
    tree.update_inventory("device", {"VGPU": {"total": 1}})
    tree.update_aggregates("device", ["aggregate"])
    tree.update_resources("device", {"VGPU": {1}})
    tree.populate_from_iterable([listed("device", "cell", generation=7)])
    assert tree.data("device") == ("device", "device name", 7, "cell", {}, set(), set(), {})


def test_a_replaced_provider_loses_its_generation_unless_it_is_given(tree: ProviderTree) -> None:
    tree.populate_from_iterable([listed("device", "cell")])
    assert tree.data("device").generation is None


def test_descendants_of_a_replaced_provider_vanish_unless_they_are_given(
    tree: ProviderTree,
) -> None:
    tree.new_child("other", "cell", "other")
    tree.populate_from_iterable([listed("cell", "host"), listed("other", "cell")])
    assert tree.get_provider_uuids("host") == ["host", "cell", "other"]
    assert not tree.exists("device name")


def test_providers_that_are_not_given_stay_as_they_are(tree: ProviderTree) -> None:
    tree.update_traits("storage", ["MISC_SHARES_VIA_AGGREGATE"], generation=3)
    storage, cell = tree.data("storage"), tree.data("cell")
    tree.populate_from_iterable([listed("device", "cell"), listed("new", "host")])
    assert tree.data("storage") == storage
    assert tree.data("cell") == cell


def test_a_replaced_root_comes_last(tree: ProviderTree) -> None:
    tree.populate_from_iterable(HOST)
    assert tree.get_provider_uuids() == ["storage", "host", "cell", "device"]


@pytest.mark.parametrize("uuid", ["host", "device"])
def test_a_rename_takes_effect(tree: ProviderTree, uuid: str) -> None:
    parent = tree.data(uuid).parent_uuid
    tree.populate_from_iterable([listed(uuid, parent, name="new name")])
    assert tree.data("new name").uuid == uuid
    assert not tree.exists(f"{uuid} name")


def test_a_provider_can_be_moved_below_another_parent(tree: ProviderTree) -> None:
    tree.populate_from_iterable([listed("device", "storage")])
    assert parents(tree) == {"host": None, "cell": "host", "storage": None, "device": "storage"}


def test_a_root_can_become_a_child_and_a_child_a_root(tree: ProviderTree) -> None:
    tree.populate_from_iterable([listed("storage", "host"), listed("cell")])
    assert parents(tree) == {"host": None, "storage": "host", "cell": None}
    assert [root.uuid for root in tree.roots] == ["host", "cell"]


def test_a_child_and_its_parent_can_change_places(tree: ProviderTree) -> None:
    tree.populate_from_iterable([listed("cell", "device"), listed("device", "host")])
    assert parents(tree) == {"host": None, "device": "host", "cell": "device", "storage": None}


def test_a_uuid_that_is_the_name_of_a_provider_replaces_no_provider(tree: ProviderTree) -> None:
    tree.populate_from_iterable([listed("cell name", "host", name="x")])
    assert tree.get_provider_uuids("host") == ["host", "cell", "device", "cell name"]


@pytest.mark.parametrize(
    "cycle",
    [
        [listed("a", "a")],
        [listed("a", "b"), listed("b", "a")],
        [listed("a", "b"), listed("b", "c"), listed("c", "a"), listed("below", "a")],
    ],
)
def test_a_value_error_names_the_members_of_a_cycle(
    tree: ProviderTree, cycle: list[dict[str, Any]]
) -> None:
    before = parents(tree)
    with pytest.raises(ValueError, match=f": {', '.join(entry['uuid'] for entry in cycle)}$"):
        tree.populate_from_iterable(cycle)
    assert parents(tree) == before


def test_providers_outside_of_a_cycle_are_added(tree: ProviderTree) -> None:
    with pytest.raises(ValueError, match=r"ancestors: a, b$"):
        tree.populate_from_iterable([listed("a", "b"), listed("b", "a"), listed("new", "host")])
    assert tree.exists("new")
    assert not tree.exists("a")


def test_the_last_of_two_entries_with_the_same_uuid_counts() -> None:
    tree = ProviderTree()
    tree.populate_from_iterable([listed("a", "nobody", name="first"), listed("a", name="second")])
    assert parents(tree) == {"a": None}
    assert tree.exists("second")
    assert not tree.exists("first")
