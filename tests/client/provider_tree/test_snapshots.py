"""ProviderTree.data returns a snapshot of a provider."""

from __future__ import annotations

import pytest

from roost.client.provider_tree import ProviderData, ProviderTree


@pytest.fixture
def tree() -> ProviderTree:
    tree = ProviderTree()
    tree.new_root("host", "host-uuid", generation=1)
    return tree


def test_the_fields_of_a_snapshot_have_the_order_of_nova(tree: ProviderTree) -> None:
    assert ProviderData._fields == (
        "uuid",
        "name",
        "generation",
        "parent_uuid",
        "inventory",
        "traits",
        "aggregates",
        "resources",
    )
    assert type(tree.data("host")) is ProviderData


@pytest.mark.parametrize("field", ProviderData._fields)
def test_a_field_of_a_snapshot_cannot_be_assigned(tree: ProviderTree, field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(tree.data("host"), field, None)


def test_changing_a_snapshot_does_not_change_the_tree(tree: ProviderTree) -> None:
    tree.update_inventory("host", {"VCPU": {"total": 8, "tags": ["a"]}})
    tree.update_resources("host", {"PCPU": {1}})
    before = tree.data("host")
    changed = tree.data("host")
    changed.inventory["VCPU"]["total"] = 9
    changed.inventory["VCPU"]["tags"].append("b")
    changed.inventory["PCPU"] = {}
    changed.traits.add("CUSTOM_GOLD")
    changed.aggregates.add("aggregate")
    changed.resources["PCPU"].add(2)
    assert tree.data("host") == before


def test_a_snapshot_does_not_change_with_the_tree(tree: ProviderTree) -> None:
    snapshot = tree.data("host")
    tree.update_inventory("host", {"VCPU": {"total": 8}}, generation=9)
    tree.add_traits("host", "CUSTOM_GOLD")
    tree.add_aggregates("host", "aggregate")
    tree.update_resources("host", {"PCPU": {1}})
    assert snapshot == ("host-uuid", "host", 1, None, {}, set(), set(), {})


def test_the_values_of_a_snapshot_do_not_count_as_changes(tree: ProviderTree) -> None:
    tree.update_inventory("host", {"VCPU": {"total": 8}})
    tree.add_traits("host", "CUSTOM_GOLD")
    tree.add_aggregates("host", "aggregate")
    snapshot = tree.data("host")
    assert not tree.has_inventory_changed("host", snapshot.inventory)
    assert not tree.have_traits_changed("host", snapshot.traits)
    assert not tree.have_aggregates_changed("host", snapshot.aggregates)
    tree.add_traits("host", "CUSTOM_SILVER")
    assert tree.have_traits_changed("host", snapshot.traits)
