"""The linux driver: the whole tree that each captured machine is, in a file beside its capture."""

from __future__ import annotations

import os_resource_classes
import os_traits
import pytest

from roost.client.declaration import Declaration
from roost.client.drivers.linux import LinuxDriver
from roost.model.identifiers import is_custom_name
from support.machines import CAPTURES, drawing

MACHINES = sorted(path.stem for path in CAPTURES.glob("*.txt"))


def declare(name: str) -> Declaration:
    return LinuxDriver(root=CAPTURES / f"{name}.txt").declare("m1")


@pytest.mark.parametrize("name", MACHINES)
def test_the_tree_of_a_machine(name: str) -> None:
    assert drawing(declare(name)) == (CAPTURES / f"{name}.tree").read_text()


@pytest.mark.parametrize("name", MACHINES)
def test_every_name_is_one_that_a_server_takes(name: str) -> None:
    names = {
        each
        for provider in declare(name).providers
        for each in (*provider.inventories, *provider.traits)
    }
    standard = {*os_resource_classes.STANDARDS, *os_traits.get_traits()}
    assert {each for each in names if not is_custom_name(each)} <= standard


@pytest.mark.parametrize("name", MACHINES)
def test_parents_come_before_their_children_and_no_name_twice(name: str) -> None:
    seen: set[str | None] = {None}
    for provider in declare(name).providers:
        assert provider.parent in seen
        assert provider.name not in seen
        seen.add(provider.name)


@pytest.mark.parametrize("name", MACHINES)
def test_marks_of_other_services_are_not_set(name: str) -> None:
    traits = {each for provider in declare(name).providers for each in provider.traits}
    assert not [each for each in traits if each.startswith(("COMPUTE_", "OWNER_"))]


def test_an_inventory_says_what_the_machine_knows() -> None:
    numa = declare("two-socket-server").providers[1]
    assert numa.inventories["MEMORY_MB"] == {
        "total": 257658,
        "reserved": 74240,
        "max_unit": 257658,
    }
