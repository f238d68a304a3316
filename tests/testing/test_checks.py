"""The checks of drivers: what they accept, and what they find."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from uuid import uuid4

import pytest

from roost.client import Declaration, DeclaredProvider, ProviderTree, ReshapeNeeded
from roost.client.drivers.driver import Allocations
from roost.testing import (
    FakePlacement,
    assert_moves_allocations,
    assert_settles,
    assert_survives_conflicts,
    assert_survives_lost_answers,
    drawing,
    report_once,
)

CONSUMER = str(uuid4())


class Editing:
    """A driver with two children."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        provider_tree.update_inventory(nodename, {"VCPU": {"total": 8, "reserved": 1}})
        provider_tree.add_traits(nodename, "HW_CPU_X86_AVX", "CUSTOM_GOLD")
        for number in range(2):
            name = f"{nodename}_card{number}"
            if not provider_tree.exists(name):
                provider_tree.new_child(name, nodename)
            provider_tree.update_inventory(name, {"CUSTOM_CARD": {"total": 4}})


class Declaring:
    """The same host, declared."""

    def declare(self, nodename: str) -> Declaration:
        cards = (
            DeclaredProvider(
                f"{nodename}_card{number}",
                parent=nodename,
                inventories={"CUSTOM_CARD": {"total": 4}},
            )
            for number in range(2)
        )
        host = DeclaredProvider(
            nodename,
            inventories={"VCPU": {"total": 8, "reserved": 1}},
            traits=frozenset({"HW_CPU_X86_AVX", "CUSTOM_GOLD"}),
        )
        return Declaration((host, *cards))


class Restless(Editing):
    """A driver that finds another total at each call."""

    def __init__(self) -> None:
        self._totals = count(1)

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        provider_tree.update_inventory(nodename, {"VCPU": {"total": next(self._totals)}})


class Forgetful(Editing):
    """A driver that adds its card only at the first call."""

    def __init__(self) -> None:
        self._calls = count()

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        provider_tree.update_inventory(nodename, {"VCPU": {"total": 8}})
        if next(self._calls) in (0, 1):
            provider_tree.add_traits(nodename, "CUSTOM_GOLD")


class Reshaping:
    """A driver that moves VGPU to a child, and allocations as `share` says."""

    def __init__(self, share: Callable[[int], int] = lambda amount: amount) -> None:
        self._share = share

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        root, child = provider_tree.data(nodename), f"{nodename}_gpu"
        if "VGPU" in root.inventory and allocations is None:
            raise ReshapeNeeded
        if not provider_tree.exists(child):
            provider_tree.new_child(child, nodename)
        provider_tree.update_inventory(child, {"VGPU": {"total": 8}})
        provider_tree.update_inventory(nodename, {})
        for consumer in (allocations or {}).values():
            amount = consumer["allocations"].pop(root.uuid)["resources"]["VGPU"]
            uuid = provider_tree.data(child).uuid
            consumer["allocations"][uuid] = {"resources": {"VGPU": self._share(amount)}}


TREE = """\
host  VCPU 8 reserved 1
: CUSTOM_GOLD HW_CPU_X86_AVX
    host_card0  CUSTOM_CARD 4
    host_card1  CUSTOM_CARD 4
"""


@pytest.mark.parametrize("driver", [Editing(), Declaring()])
def test_a_report_gives_the_tree_that_the_server_has(driver: Editing | Declaring) -> None:
    assert drawing(report_once(driver)) == TREE
    assert drawing(Declaring().declare("host")) == TREE


@pytest.mark.parametrize("driver", [Editing(), Declaring()])
def test_a_good_driver_passes_the_checks(driver: Editing | Declaring) -> None:
    assert_settles(driver)
    assert_survives_conflicts(driver)
    assert_survives_lost_answers(driver)


def test_a_driver_whose_second_report_changes_something_does_not_settle() -> None:
    with pytest.raises(AssertionError, match=r"second report of host.*\n.*VCPU total 1 -> 2"):
        assert_settles(Restless())


def test_a_driver_that_remembers_its_first_call_does_not_survive_a_conflict() -> None:
    with pytest.raises(AssertionError, match="after a conflict at PUT"):
        assert_survives_conflicts(Forgetful())


def test_a_declaration_that_cannot_be_made_true_is_an_error() -> None:
    class Misspelt:
        def declare(self, nodename: str) -> Declaration:
            return Declaration((DeclaredProvider(nodename, traits=frozenset({"HW_CPU_AVX9"})),))

    with pytest.raises(AssertionError, match="trait HW_CPU_AVX9 is not written"):
        report_once(Misspelt())


def prepared() -> FakePlacement:
    server = FakePlacement()
    server.add_provider("host", inventories={"VGPU": {"total": 8}})
    server.claim(CONSUMER, {"host": {"VGPU": 3}})
    return server


def test_a_reshape_that_keeps_all_amounts_passes() -> None:
    server = prepared()
    assert_moves_allocations(Reshaping(), server)
    assert server.holds(CONSUMER) == {"host_gpu": {"VGPU": 3}}


def test_a_reshape_that_loses_an_amount_is_found() -> None:
    lossy = Reshaping(share=lambda amount: amount - 1)
    with pytest.raises(AssertionError, match=r"held {'VGPU': 3}, and now holds {'VGPU': 2}"):
        assert_moves_allocations(lossy, prepared())


def test_a_driver_that_does_not_reshape_is_found() -> None:
    server = FakePlacement()
    server.add_provider("host")
    with pytest.raises(AssertionError, match="did not reshape"):
        assert_moves_allocations(Editing(), server)
