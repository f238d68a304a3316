"""The linux driver declares for each capture the tree in the file beside it."""

from __future__ import annotations

import os_resource_classes
import os_traits
import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.model.identifiers import is_custom_name
from roost.model.trees.declaration import Declaration
from support.client.captured_machines import CAPTURES, drawing

MACHINES = sorted(path.stem for path in CAPTURES.glob("*.txt"))


def declare(name: str) -> Declaration:
    return LinuxDriver(root=CAPTURES / f"{name}.txt").declare("m1")


@pytest.mark.parametrize("name", MACHINES)
def test_a_capture_becomes_the_expected_tree(name: str) -> None:
    assert drawing(declare(name)) == (CAPTURES / f"{name}.tree").read_text()


@pytest.mark.parametrize("name", MACHINES)
def test_classes_and_traits_are_standard_or_custom(name: str) -> None:
    names = {
        each
        for provider in declare(name).providers
        for each in (*provider.inventories, *provider.traits)
    }
    standard = {*os_resource_classes.STANDARDS, *os_traits.get_traits()}
    assert {each for each in names if not is_custom_name(each)} <= standard


@pytest.mark.parametrize("name", MACHINES)
def test_parents_come_before_their_children_and_names_are_unique(name: str) -> None:
    seen: set[str | None] = {None}
    for provider in declare(name).providers:
        assert provider.parent in seen
        assert provider.name not in seen
        seen.add(provider.name)


@pytest.mark.parametrize("name", MACHINES)
def test_traits_of_other_services_are_not_declared(name: str) -> None:
    traits = {each for provider in declare(name).providers for each in provider.traits}
    assert not [each for each in traits if each.startswith(("COMPUTE_", "OWNER_"))]


def test_an_inventory_declares_only_the_fields_that_the_machine_determines() -> None:
    numa = declare("two-socket-server").providers[1]
    assert numa.inventories["MEMORY_MB"] == {
        "total": 257658,
        "reserved": 74240,
        "max_unit": 257658,
    }
