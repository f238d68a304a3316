"""ProviderTree: inventory, traits, aggregates, assigned resources and generations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from roost.client.provider_tree import ProviderTree

Update = Callable[..., bool]

FULL = {
    "total": 8,
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 8,
    "step_size": 1,
    "allocation_ratio": 16.0,
}


@pytest.fixture
def tree() -> ProviderTree:
    tree = ProviderTree()
    tree.new_root("host", "host-uuid")
    tree.new_child("cell", "host", "cell-uuid")
    return tree


# -- inventory


def test_has_inventory_is_false_for_an_empty_inventory(tree: ProviderTree) -> None:
    assert tree.has_inventory("host") is False
    tree.update_inventory("host", {"VCPU": {"total": 8}})
    assert tree.has_inventory("host-uuid") is True
    tree.update_inventory("host", {})
    assert tree.has_inventory("host") is False


CHANGES: dict[str, tuple[dict[str, Any], bool]] = {
    "the same": ({"VCPU": FULL}, False),
    "fewer fields": ({"VCPU": {"total": 8}}, False),
    "no fields": ({"VCPU": {}}, False),
    "an equal number of another type": ({"VCPU": {"total": 8.0}}, False),
    "no class": ({}, True),
    "another class": ({"PCPU": FULL}, True),
    "one class more": ({"VCPU": FULL, "PCPU": {}}, True),
    "a field with another value": ({"VCPU": {**FULL, "total": 9}}, True),
    "fewer fields, one with another value": ({"VCPU": {"reserved": 1}}, True),
    "a field more": ({"VCPU": {"total": 8, "colour": None}}, True),
}


@pytest.mark.parametrize("case", CHANGES)
def test_an_omitted_field_is_no_change_of_an_inventory(tree: ProviderTree, case: str) -> None:
    inventory, changed = CHANGES[case]
    tree.update_inventory("host", {"VCPU": FULL})
    assert tree.has_inventory_changed("host", inventory) is changed
    assert tree.data("host").inventory == {"VCPU": FULL}, "asking changes nothing"
    assert tree.update_inventory("host", inventory) is changed


def test_an_unchanged_inventory_keeps_all_its_fields(tree: ProviderTree) -> None:
    tree.update_inventory("host", {"VCPU": FULL})
    assert not tree.update_inventory("host", {"VCPU": {"total": 8}})
    assert tree.data("host").inventory == {"VCPU": FULL}


def test_a_changed_inventory_loses_the_omitted_fields(tree: ProviderTree) -> None:
    tree.update_inventory("host", {"VCPU": FULL, "DISK_GB": FULL})
    changed = {"VCPU": {"total": 9}, "DISK_GB": {"total": 8}}
    assert tree.update_inventory("host", changed)
    assert tree.data("host").inventory == changed


def test_the_stored_inventory_is_a_deep_copy(tree: ProviderTree) -> None:
    shared = {"total": 8, "tags": ["a"]}
    inventory: dict[str, dict[str, Any]] = {"VCPU": {"total": 8}, "PCPU": shared}
    tree.update_inventory("host", inventory)
    inventory["VCPU"]["total"] = 9
    inventory["DISK_GB"] = {}
    shared["total"] = 9
    inventory["PCPU"]["tags"].append("b")
    assert tree.data("host").inventory == {
        "VCPU": {"total": 8},
        "PCPU": {"total": 8, "tags": ["a"]},
    }


@pytest.mark.parametrize("method", ["has_inventory_changed", "update_inventory"])
@pytest.mark.parametrize("bad", [None, ["VCPU"], "VCPU"])
def test_an_inventory_that_is_no_dict_is_a_type_error(
    tree: ProviderTree, method: str, bad: object
) -> None:
    with pytest.raises(TypeError, match="inventory of provider host must be a dict"):
        getattr(tree, method)("host", bad)


def test_a_sharing_provider_has_both_the_class_and_the_trait(tree: ProviderTree) -> None:
    tree.update_inventory("host", {"DISK_GB": {"total": 8}})
    tree.new_root("storage", "storage-uuid")
    tree.add_traits("storage", "MISC_SHARES_VIA_AGGREGATE")
    assert tree.has_sharing_provider("DISK_GB") is False
    tree.update_inventory("storage", {"DISK_GB": {"total": 8}})
    assert tree.has_sharing_provider("DISK_GB") is True
    assert tree.has_sharing_provider("VCPU") is False


def test_a_sharing_provider_may_be_anywhere_in_the_forest(tree: ProviderTree) -> None:
    tree.update_inventory("cell", {"DISK_GB": {"total": 8}})
    tree.add_traits("cell", "MISC_SHARES_VIA_AGGREGATE")
    assert tree.has_sharing_provider("DISK_GB")


def test_an_empty_tree_has_no_sharing_provider() -> None:
    assert not ProviderTree().has_sharing_provider("DISK_GB")


# -- traits and aggregates, which have the same rules

SETS = pytest.mark.parametrize("noun", ["traits", "aggregates"])


class Members:
    """The methods of a tree for traits or for aggregates of one provider."""

    def __init__(self, tree: ProviderTree, noun: str) -> None:
        all_of = {"traits": "has_traits", "aggregates": "in_aggregates"}[noun]
        self.tree, self.noun = tree, noun
        self.has_all: Callable[[str, Iterable[str]], bool] = getattr(tree, all_of)
        self.have_changed: Callable[[str, Iterable[str]], bool]
        self.have_changed = getattr(tree, f"have_{noun}_changed")
        self.update: Update = getattr(tree, f"update_{noun}")
        self.add: Callable[..., None] = getattr(tree, f"add_{noun}")
        self.remove: Callable[..., None] = getattr(tree, f"remove_{noun}")

    @property
    def stored(self) -> set[str]:
        members: set[str] = getattr(self.tree.data("host"), self.noun)
        return members


@pytest.fixture
def members(tree: ProviderTree, noun: str) -> Members:
    members = Members(tree, noun)
    members.update("host", ["A", "B"], generation=3)
    return members


@SETS
@pytest.mark.parametrize(
    ("asked", "expected"), [([], True), (["A"], True), (["B", "A"], True), (["A", "C"], False)]
)
def test_a_provider_has_members_only_if_it_has_all_of_them(
    members: Members, asked: list[str], expected: bool
) -> None:
    assert members.has_all("host", asked) is expected


@SETS
@pytest.mark.parametrize(
    ("asked", "expected"),
    [(["A"], True), (["A", "B", "C"], True), ([], True), (["B", "A"], False), (["C", "D"], True)],
)
def test_members_have_changed_if_the_sets_differ(
    members: Members, asked: list[str], expected: bool
) -> None:
    assert members.have_changed("host", asked) is expected
    assert members.stored == {"A", "B"}, "asking changes nothing"
    assert members.update("host", asked) is expected
    assert members.stored == set(asked)


@SETS
@pytest.mark.parametrize(
    "same",
    [["B", "A", "A"], ("A", "B"), {"A", "B"}, {"A": 1, "B": 2}.keys(), frozenset({"A", "B"})],
)
def test_order_duplicates_and_kind_of_iterable_do_not_matter(
    members: Members, same: Iterable[str]
) -> None:
    assert members.has_all("host", same)
    assert not members.have_changed("host", same)
    assert not members.update("host", same)


@SETS
def test_the_members_may_come_from_an_iterator(members: Members) -> None:
    assert members.update("host", iter(["C"]))
    assert members.stored == {"C"}


@SETS
def test_the_stored_set_is_a_copy(members: Members) -> None:
    given = {"C"}
    members.update("host", given)
    given.add("D")
    assert members.stored == {"C"}


@SETS
def test_adding_keeps_the_present_members(members: Members) -> None:
    members.add("host", "B", "C")
    assert members.stored == {"A", "B", "C"}
    members.add("host")
    assert members.stored == {"A", "B", "C"}


@SETS
def test_removing_ignores_absent_members(members: Members) -> None:
    members.remove("host", "B", "C")
    assert members.stored == {"A"}
    members.remove("host")
    assert members.stored == {"A"}


@SETS
def test_adding_and_removing_keep_the_generation(members: Members) -> None:
    members.add("host", "C")
    members.remove("host", "A")
    assert members.tree.data("host").generation == 3


# -- generations

UPDATES: dict[str, tuple[Any, Any]] = {
    "update_inventory": ({"VCPU": {"total": 8}}, {"VCPU": {"total": 9}}),
    "update_traits": (["A"], ["B"]),
    "update_aggregates": (["A"], ["B"]),
}
EACH_UPDATE = pytest.mark.parametrize("method", UPDATES)


@EACH_UPDATE
def test_an_update_without_generation_keeps_the_stored_one(tree: ProviderTree, method: str) -> None:
    first, second = UPDATES[method]
    update: Update = getattr(tree, method)
    update("host", first, generation=4)
    assert update("host", second)
    assert tree.data("host").generation == 4


@EACH_UPDATE
def test_a_generation_is_stored_even_if_nothing_else_changed(
    tree: ProviderTree, method: str
) -> None:
    first, _ = UPDATES[method]
    update: Update = getattr(tree, method)
    update("host", first, generation=4)
    assert update("host", first, generation=5) is False
    assert tree.data("host").generation == 5


@EACH_UPDATE
def test_a_generation_may_be_zero(tree: ProviderTree, method: str) -> None:
    update: Update = getattr(tree, method)
    update("host", UPDATES[method][0], 4)
    update("host", UPDATES[method][1], 0)
    assert tree.data("host").generation == 0


def test_inventory_traits_and_aggregates_share_one_generation(tree: ProviderTree) -> None:
    for generation, method in enumerate(UPDATES):
        getattr(tree, method)("host", UPDATES[method][0], generation)
        assert tree.data("host").generation == generation
    assert tree.data("cell").generation is None


@EACH_UPDATE
def test_a_generation_may_decrease(tree: ProviderTree, method: str) -> None:
    update: Update = getattr(tree, method)
    update("host", UPDATES[method][0], generation=9)
    update("host", UPDATES[method][0], generation=2)
    assert tree.data("host").generation == 2


# -- assigned resources


class Device:
    """An opaque object, which the tree only copies and compares."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.history: list[str] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)


def test_the_stored_resources_are_deep_copies(tree: ProviderTree) -> None:
    device = Device("0000:81:00.0")
    resources = {"VGPU": {device}}
    assert tree.update_resources("host", resources) is True
    device.history.append("changed later")
    resources["VGPU"].add(Device("0000:82:00.0"))
    (stored,) = tree.data("host").resources["VGPU"]
    assert stored == device
    assert stored.history == []


@pytest.mark.parametrize(
    ("resources", "changed"),
    [
        ({"VGPU": {Device("a")}}, False),
        ({"VGPU": {Device("b")}}, True),
        ({"VGPU": set()}, True),
        ({}, True),
    ],
)
def test_resources_have_changed_if_they_are_not_equal(
    tree: ProviderTree, resources: dict[str, set[Any]], changed: bool
) -> None:
    tree.update_resources("host", {"VGPU": {Device("a")}})
    assert tree.update_resources("host", resources) is changed
    assert tree.data("host").resources == resources


def test_an_update_of_resources_keeps_the_generation(tree: ProviderTree) -> None:
    tree.update_traits("host", [], generation=3)
    tree.update_resources("host", {"VGPU": {Device("a")}})
    assert tree.data("host").generation == 3
