"""ProviderTree: adding, finding, listing and removing providers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roost.client.provider_tree import ProviderTree
from roost.model.identifiers import is_uuid


@pytest.fixture
def tree() -> ProviderTree:
    """Two roots. The first has two NUMA cells, and the first cell has two devices."""
    tree = ProviderTree()
    tree.new_root("host", "host-uuid", generation=1)
    tree.new_child("cell0", "host", "cell0-uuid", generation=2)
    tree.new_child("cell1", "host", "cell1-uuid")
    tree.new_child("device0", "cell0", "device0-uuid")
    tree.new_child("device1", "cell0", "device1-uuid")
    tree.new_root("storage", "storage-uuid")
    return tree


ALL = [
    "host-uuid",
    "cell0-uuid",
    "device0-uuid",
    "device1-uuid",
    "cell1-uuid",
    "storage-uuid",
]


def found(tree: ProviderTree, name_or_uuid: str) -> str:
    return tree.data(name_or_uuid).uuid


# -- the model


def test_a_new_tree_is_empty() -> None:
    assert ProviderTree().get_provider_uuids() == []
    assert list(ProviderTree().roots) == []


def test_a_new_provider_has_no_associations(tree: ProviderTree) -> None:
    for uuid in ALL:
        assert tree.data(uuid)[4:] == ({}, set(), set(), {})


def test_values_are_not_validated() -> None:
    tree = ProviderTree()
    tree.new_root("", "not a uuid")
    tree.update_inventory("not a uuid", {"no class": {"no field": "no number"}})
    tree.update_traits("not a uuid", ["no trait"])
    tree.update_aggregates("not a uuid", ["no uuid"])
    assert tree.data("").traits == {"no trait"}


# -- addressing


@pytest.mark.parametrize("address", ["host", "host-uuid", "device1", "device1-uuid", "storage"])
def test_a_provider_is_addressed_by_name_or_uuid(tree: ProviderTree, address: str) -> None:
    assert tree.exists(address)
    assert found(tree, address) == address.removesuffix("-uuid") + "-uuid"


@pytest.mark.parametrize("address", ["HOST", "hos", "host ", "", "Host-uuid", None])
def test_only_exactly_equal_addresses_match(tree: ProviderTree, address: Any) -> None:
    assert not tree.exists(address)


UNKNOWN: dict[str, Callable[[ProviderTree], object]] = {
    "get_provider_uuids": lambda tree: tree.get_provider_uuids("missing"),
    "get_provider_uuids_in_tree": lambda tree: tree.get_provider_uuids_in_tree("missing"),
    "data": lambda tree: tree.data("missing"),
    "new_child": lambda tree: tree.new_child("child", "missing"),
    "remove": lambda tree: tree.remove("missing"),
    "has_inventory": lambda tree: tree.has_inventory("missing"),
    "has_inventory_changed": lambda tree: tree.has_inventory_changed("missing", {}),
    "update_inventory": lambda tree: tree.update_inventory("missing", {}),
    "has_traits": lambda tree: tree.has_traits("missing", []),
    "have_traits_changed": lambda tree: tree.have_traits_changed("missing", []),
    "update_traits": lambda tree: tree.update_traits("missing", []),
    "add_traits": lambda tree: tree.add_traits("missing", "CUSTOM_GOLD"),
    "remove_traits": lambda tree: tree.remove_traits("missing", "CUSTOM_GOLD"),
    "in_aggregates": lambda tree: tree.in_aggregates("missing", []),
    "have_aggregates_changed": lambda tree: tree.have_aggregates_changed("missing", []),
    "update_aggregates": lambda tree: tree.update_aggregates("missing", []),
    "add_aggregates": lambda tree: tree.add_aggregates("missing"),
    "remove_aggregates": lambda tree: tree.remove_aggregates("missing"),
    "update_resources": lambda tree: tree.update_resources("missing", {}),
    "subtree": lambda tree: tree.subtree("missing"),
    "_find_with_lock": lambda tree: tree._find_with_lock("missing"),
}


@pytest.mark.parametrize("method", UNKNOWN)
def test_a_value_error_names_an_unknown_provider(tree: ProviderTree, method: str) -> None:
    with pytest.raises(ValueError, match=r"^No such provider missing$"):
        UNKNOWN[method](tree)


@pytest.mark.parametrize("method", ["add_traits", "remove_traits"])
def test_a_call_without_traits_accepts_an_unknown_provider(tree: ProviderTree, method: str) -> None:
    getattr(tree, method)("missing")


def test_a_root_is_found_by_uuid_before_a_root_of_that_name() -> None:
    tree = ProviderTree()
    tree.new_root("first", "x")
    tree.new_root("x", "named-uuid")
    assert found(tree, "x") == "x"


def test_a_root_is_found_by_uuid_even_if_a_younger_one_shares_its_name() -> None:
    tree = ProviderTree()
    tree.new_root("x", "x")
    tree.new_root("x", "younger")
    assert found(tree, "x") == "x"


def test_a_root_is_found_by_name_before_another_provider_of_that_uuid(tree: ProviderTree) -> None:
    tree.new_root("device0-uuid", "late-uuid")
    assert found(tree, "device0-uuid") == "late-uuid"


def test_a_root_is_found_by_name_before_children_of_that_name(tree: ProviderTree) -> None:
    tree.new_root("device0", "late-uuid")
    assert found(tree, "device0") == "late-uuid"


def test_older_trees_are_searched_first(tree: ProviderTree) -> None:
    tree.new_child("same", "storage", "below-storage")
    assert found(tree, "same") == "below-storage"
    tree.new_child("same", "cell1", "below-host")
    assert found(tree, "same") == "below-host"


def test_a_tree_is_searched_depth_first(tree: ProviderTree) -> None:
    tree.new_child("same", "host", "shallow")
    assert found(tree, "same") == "shallow"
    tree.new_child("same", "device1", "deep")
    assert found(tree, "same") == "deep"


def test_a_provider_is_found_before_its_descendants(tree: ProviderTree) -> None:
    tree.new_child("same", "cell0", "upper")
    tree.new_child("same", "upper", "lower")
    assert found(tree, "same") == "upper"


def test_a_child_with_the_uuid_comes_before_its_siblings_and_their_descendants() -> None:
    tree = ProviderTree()
    tree.new_root("host", "host-uuid")
    tree.new_child("a", "host", "a-uuid")
    tree.new_child("x", "host", "sibling")
    tree.new_child("c", "host", "c-uuid")
    # `new_child` would refuse the uuid "x" because of the name "x".
    listed = [{"uuid": "x", "name": "by uuid", "parent_provider_uuid": "host-uuid"}]
    tree.populate_from_iterable(listed)
    tree.new_child("x", "a", "nephew")
    assert tree.get_provider_uuids("host") == [
        "host-uuid",
        "a-uuid",
        "nephew",
        "sibling",
        "c-uuid",
        "x",
    ]
    assert found(tree, "x") == "x"


def test_a_name_in_an_older_branch_comes_before_a_uuid_in_a_younger_one(
    tree: ProviderTree,
) -> None:
    tree.new_child("x", "cell1", "younger")
    tree.populate_from_iterable(
        [{"uuid": "x", "name": "by uuid", "parent_provider_uuid": "cell0-uuid"}]
    )
    assert found(tree, "x") == "x"
    tree.new_child("x", "device0", "older")
    assert found(tree, "x") == "x"
    tree.populate_from_iterable(
        [{"uuid": "x", "name": "by uuid", "parent_provider_uuid": "cell1-uuid"}]
    )
    assert found(tree, "x") == "older"


def test_a_parent_with_the_name_comes_before_a_child_with_the_uuid() -> None:
    tree = ProviderTree()
    tree.new_root("host", "host-uuid")
    tree.new_child("x", "host", "parent")
    tree.populate_from_iterable([{"uuid": "x", "name": "child", "parent_provider_uuid": "parent"}])
    assert found(tree, "x") == "parent"


def test_a_provider_may_be_named_like_its_own_uuid(tree: ProviderTree) -> None:
    tree.new_child("same", "cell0", "same")
    assert found(tree, "same") == "same"
    tree.remove("same")
    assert not tree.exists("same")


def test_none_finds_no_provider(tree: ProviderTree) -> None:
    none: Any = None
    assert not tree.exists(none)
    assert tree.new_root("without", none) is None
    assert tree.data("without").uuid is None
    assert not tree.exists(none)


def test_only_one_root_may_lack_a_uuid_and_it_cannot_have_children() -> None:
    tree = ProviderTree()
    none: Any = None
    tree.new_root("without", none)
    with pytest.raises(ValueError, match="uuid None already"):
        tree.new_root("another", none)
    with pytest.raises(ValueError, match="without cannot have children"):
        tree.new_child("child", "without")
    assert tree.get_provider_uuids() == [none]


# -- lists of uuids


def test_uuids_come_top_down_depth_first_in_order_of_insertion(tree: ProviderTree) -> None:
    assert tree.get_provider_uuids() == ALL


def test_the_uuids_of_a_provider_are_its_own_and_those_of_its_descendants(
    tree: ProviderTree,
) -> None:
    assert tree.get_provider_uuids("cell0") == ["cell0-uuid", "device0-uuid", "device1-uuid"]
    assert tree.get_provider_uuids(name_or_uuid="cell1-uuid") == ["cell1-uuid"]


@pytest.mark.parametrize("member", ["host", "cell1", "device1-uuid"])
def test_uuids_in_the_tree_of_any_member_begin_with_the_root(
    tree: ProviderTree, member: str
) -> None:
    assert tree.get_provider_uuids_in_tree(member) == ALL[:5]


def test_roots_are_the_providers_themselves_in_order_of_insertion(tree: ProviderTree) -> None:
    assert [root.name for root in tree.roots] == ["host", "storage"]
    assert next(iter(tree.roots)) is tree._find_with_lock("host")


# Tests of Nova call `_find_with_lock`, so it is part of the interface in spite of its name.


def test_find_with_lock_returns_the_provider_with_its_children(tree: ProviderTree) -> None:
    provider = tree._find_with_lock("cell0")
    assert (provider.uuid, provider.name, provider.generation) == ("cell0-uuid", "cell0", 2)
    assert provider.parent_uuid == "host-uuid"
    assert provider.children == {
        "device0-uuid": tree._find_with_lock("device0"),
        "device1-uuid": tree._find_with_lock("device1"),
    }


def test_find_with_lock_can_return_the_root(tree: ProviderTree) -> None:
    assert tree._find_with_lock("device0", return_root=True).uuid == "host-uuid"
    assert tree._find_with_lock("storage", return_root=True).uuid == "storage-uuid"


# -- new roots and children


def test_new_root_returns_the_uuid_and_stores_the_generation() -> None:
    tree = ProviderTree()
    assert tree.new_root(name="host", uuid="host-uuid", generation=0) == "host-uuid"
    assert tree.data("host")[:4] == ("host-uuid", "host", 0, None)
    tree.new_root("other", "other-uuid")
    assert tree.data("other").generation is None


@pytest.mark.parametrize("taken", ["host-uuid", "host", "device0-uuid", "device0"])
def test_a_new_root_must_not_have_a_uuid_that_matches_a_provider(
    tree: ProviderTree, taken: str
) -> None:
    with pytest.raises(ValueError, match=f"provider {taken} already"):
        tree.new_root("new", taken)
    assert tree.get_provider_uuids() == ALL


def test_a_name_finds_the_younger_of_two_roots(tree: ProviderTree) -> None:
    tree.new_root("host", "younger")
    assert found(tree, "host") == "younger"
    assert found(tree, "host-uuid") == "host-uuid"


@pytest.mark.parametrize(("first", "second"), [("younger", "host-uuid"), ("host-uuid", "younger")])
def test_two_roots_with_the_same_name_can_be_removed_in_any_order(
    tree: ProviderTree, first: str, second: str
) -> None:
    tree.new_root("host", "younger")
    tree.remove(first)
    assert found(tree, "host") == second
    tree.remove("host")
    assert not tree.exists("host")
    assert tree.get_provider_uuids() == ["storage-uuid"]


def test_new_child_returns_the_uuid_and_stores_the_generation(tree: ProviderTree) -> None:
    assert tree.new_child("new", "cell1", "new-uuid", 7) == "new-uuid"
    assert tree.data("new")[:4] == ("new-uuid", "new", 7, "cell1-uuid")


def test_a_new_child_without_uuid_gets_a_random_uuid(tree: ProviderTree) -> None:
    uuids = {tree.new_child(name=f"new{i}", parent="cell1") for i in range(2)}
    assert len(uuids) == 2
    assert all(is_uuid(uuid) and tree.exists(uuid) for uuid in uuids)


@pytest.mark.parametrize("taken", ["host-uuid", "storage", "device0", "device0-uuid"])
def test_a_new_child_without_uuid_must_not_have_a_name_that_matches(
    tree: ProviderTree, taken: str
) -> None:
    with pytest.raises(ValueError, match=f"provider {taken} already"):
        tree.new_child(taken, "cell1")
    assert tree.get_provider_uuids() == ALL


@pytest.mark.parametrize("taken", ["host-uuid", "storage", "device0", "device0-uuid"])
def test_a_new_child_must_not_have_a_uuid_that_matches(tree: ProviderTree, taken: str) -> None:
    with pytest.raises(ValueError, match=f"provider {taken} already"):
        tree.new_child("new", "cell1", uuid=taken)
    assert tree.get_provider_uuids() == ALL


def test_a_new_child_with_a_new_uuid_may_have_a_name_that_is_taken(
    tree: ProviderTree,
) -> None:
    assert tree.new_child("device0", "cell1", uuid="new-uuid") == "new-uuid"
    assert tree.data("new-uuid").name == "device0"


def test_a_duplicate_is_noticed_before_an_unknown_parent(tree: ProviderTree) -> None:
    with pytest.raises(ValueError, match="provider host already"):
        tree.new_child("host", "missing")


# -- removing


def test_remove_removes_the_descendants_too(tree: ProviderTree) -> None:
    tree.remove("cell0")
    assert tree.get_provider_uuids() == ["host-uuid", "cell1-uuid", "storage-uuid"]
    assert tree._find_with_lock("host").children.keys() == {"cell1-uuid"}
    for gone in ("cell0", "cell0-uuid", "device0", "device0-uuid"):
        assert not tree.exists(gone)


@pytest.mark.parametrize("address", ["host", "host-uuid"])
def test_a_removed_root_is_found_neither_by_name_nor_by_uuid(
    tree: ProviderTree, address: str
) -> None:
    tree.remove(address)
    assert not tree.exists("host")
    assert not tree.exists("host-uuid")
    assert tree.get_provider_uuids() == ["storage-uuid"]


def test_providers_can_be_removed_in_the_reversed_order_of_their_uuids(tree: ProviderTree) -> None:
    for uuid in reversed(tree.get_provider_uuids_in_tree("cell0")):
        tree.remove(uuid)
    assert tree.get_provider_uuids() == ["storage-uuid"]


def test_a_removed_provider_can_be_added_again_elsewhere(tree: ProviderTree) -> None:
    tree.update_traits("cell0", ["CUSTOM_GOLD"])
    tree.remove("cell0")
    tree.new_root("cell0", "cell0-uuid")
    assert tree.data("cell0") == ("cell0-uuid", "cell0", None, None, {}, set(), set(), {})
    assert tree.get_provider_uuids()[-1] == "cell0-uuid"


def test_a_name_finds_the_next_provider_after_the_first_is_removed(tree: ProviderTree) -> None:
    tree.new_child("device0", "cell1", "second")
    tree.remove("device0")
    assert found(tree, "device0") == "second"
