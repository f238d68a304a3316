"""The options of a driver that describes a machine."""

from __future__ import annotations

import re
from typing import Any

import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.client.drivers.machine.options import Selection
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from roost.model.trees.declaration import Declaration
from support.client.captured_machines import CAPTURES


def declare(**options: Any) -> Declaration:
    return LinuxDriver(root=CAPTURES / "two-socket-server.txt", **options).declare("m1")


def fields(declaration: Declaration, resource_class: str, field: str) -> list[float]:
    """A field of all inventories of a resource class, in the order of the providers."""
    return [
        provider.inventories[resource_class][field]
        for provider in declaration.providers
        if resource_class in provider.inventories
    ]


def names(declaration: Declaration, kind: str) -> list[str]:
    """The names of the providers with a resource class that begins with `kind`."""
    return [
        provider.name.removeprefix("m1_pci_").removeprefix("m1_disk_")
        for provider in declaration.providers
        if any(name.startswith(kind) for name in provider.inventories)
    ]


def test_the_server_keeps_the_allocation_ratios_of_cpus_and_memory_by_default() -> None:
    ratios = {
        (name in ("VCPU", "MEMORY_MB"), each.get("allocation_ratio"))
        for provider in declare().providers
        for name, each in provider.inventories.items()
    }
    assert ratios == {(True, None), (False, 1.0)}


def test_ratio_options_apply_to_shared_cpus_and_memory_only() -> None:
    declaration = declare(cpu_allocation_ratio="4.0", ram_allocation_ratio=1.5)
    assert fields(declaration, "VCPU", "allocation_ratio") == [4.0, 4.0]
    assert fields(declaration, "MEMORY_MB", "allocation_ratio") == [1.5, 1.5]
    assert fields(declaration, "PCPU", "allocation_ratio") == [1.0, 1.0]
    assert fields(declaration, "VCPU", "max_unit") == [8, 8]


def test_the_first_node_reserves_cpus_and_memory_for_the_host() -> None:
    declaration = declare(reserved_memory_mb="1000", reserved_cpus="2")
    hugepages = [64 * 1024 + 4096 * 2, 64 * 1024]
    assert fields(declaration, "MEMORY_MB", "reserved") == [hugepages[0] + 1000, hugepages[1]]
    assert fields(declaration, "VCPU", "reserved") == [2, 0]
    assert fields(declaration, "PCPU", "reserved") == [0, 0]


def test_a_node_reserves_at_most_its_total() -> None:
    declaration = declare(reserved_memory_mb=10**9, reserved_cpus=10**9)
    assert fields(declaration, "MEMORY_MB", "reserved")[0] == 257658
    assert fields(declaration, "VCPU", "reserved")[0] == 8


SDA = "wwn-0x5000cca2a1d3f0b7"
NVME = [f"nvme-eui.36344630528{number}02690025384500000001" for number in range(4)]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ("sd*", [SDA]),
        ("nvme[12]n1, sda", [NVME[1], NVME[2], SDA]),
        ("*,!nvme*", [SDA]),
        ("!sda", NVME),
        ("!wwn-*", NVME),
        (f"{SDA},nvme-eui.363446305280*", [NVME[0], SDA]),
        ("!*", []),
    ],
)
def test_patterns_choose_disks_by_id_or_by_the_name_of_the_kernel(
    patterns: str, chosen: list[str]
) -> None:
    assert names(declare(disks=patterns), "DISK_GB") == chosen


def test_a_choice_of_one_copy_of_a_disk_gives_it_its_own_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def copies(disks: str) -> list[str]:
        driver = LinuxDriver(root=CAPTURES / "storage-server.txt", disks=Selection((disks,)))
        return names(driver.declare("m1"), "DISK_GB")

    assert copies("serial-copied-disk") == ["path-pci-0000:00:05.0", "path-pci-0000:00:06.0"]
    assert "vda, vdb all report" in caplog.text
    caplog.clear()
    assert copies("path-pci-0000:00:06.0") == ["serial-copied-disk"]
    assert copies("vdb") == ["serial-copied-disk"]
    assert not caplog.records


@pytest.mark.parametrize(
    ("patterns", "offered"),
    [("!*", [False] * 3), ("nvme1n1", [False, True, False]), ("nvme-*", [True] * 3)],
)
def test_the_host_offers_disks_that_it_uses_only_if_the_operator_says_so(
    patterns: str, offered: list[bool]
) -> None:
    reserved = fields(declare(offer=patterns), "DISK_GB", "reserved")
    assert [amount == 0 for amount in reserved] == [*offered, True, True]


def test_the_host_offers_pci_functions_and_tpms_that_it_uses_if_the_operator_says_so() -> None:
    offered = Selection(("8086:9df0", "0000:01:00.0", "MSFT*"))
    laptop = LinuxDriver(root=CAPTURES / "laptop.txt", offer=offered)
    free = [
        provider.name
        for provider in laptop.declare("m1").providers[2:]
        if all(each["reserved"] == 0 for each in provider.inventories.values())
    ]
    assert free == ["m1_pci_0000:00:14.3", "m1_pci_0000:01:00.0", "m1_tpm_MSFT0101:00"]


@pytest.mark.parametrize(
    ("patterns", "totals", "traits"),
    [
        (None, [8, 2], {"NVIDIA_258", "NVIDIA_474"}),
        ("nvidia-476", [1], {"NVIDIA_476"}),
        ("*-1Q,i915-GVTg_V5_8", [2], {"NVIDIA_256", "I915_GVTG_V5_8"}),
        ("!*", [], set()),
    ],
)
def test_the_operator_chooses_the_types_of_mediated_devices(
    patterns: str | None, totals: list[int], traits: set[str]
) -> None:
    """Without a choice the types with devices count. A type without room has no inventory."""
    types = None if patterns is None else Selection(tuple(patterns.split(",")))
    driver = LinuxDriver(root=CAPTURES / "gpu-server.txt", mdev_types=types)
    declaration = driver.declare("m1")
    assert fields(declaration, "VGPU", "total") == totals
    found = {trait for provider in declaration.providers for trait in provider.traits}
    assert {each for each in found if each.startswith("CUSTOM_MDEV")} == {
        f"CUSTOM_MDEV_TYPE_{trait}" for trait in traits
    }


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ("0000:17:00.*", ["0000:17:00.0"]),
        (
            "10de:*,!0000:9*,!0000:[a-d]*",
            ["0000:17:00.0", "0000:2a:00.0", "0000:3d:00.0", "0000:5d:00.0"],
        ),
        ("!*", []),
    ],
)
def test_patterns_choose_pci_functions_by_address_or_by_vendor_and_product(
    patterns: str, chosen: list[str]
) -> None:
    assert names(declare(pci=patterns), "PGPU") == chosen


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("cpu_allocation_ratio", "0", "a number above 0"),
        ("cpu_allocation_ratio", "nan", "a number above 0"),
        ("ram_allocation_ratio", "inf", "a number above 0"),
        ("ram_allocation_ratio", "much", "a number above 0"),
        ("reserved_memory_mb", "-1", "a whole number"),
        ("reserved_memory_mb", "1.5", "a whole number"),
        ("reserved_cpus", "", "a whole number"),
        ("disks", "", "patterns with commas"),
        ("pci", "*,!", "patterns with commas"),
        ("offer", "", "patterns with commas"),
        ("mdev_types", "", "patterns with commas"),
    ],
)
def test_an_error_names_the_option_with_a_wrong_value(name: str, value: str, why: str) -> None:
    words = f"option {name} is '{re.escape(value)}', but takes {why}"
    with pytest.raises(NotConfigured, match=f"Driver linux: {words}"):
        load_driver("linux", {name: value})
    given: dict[str, Any] = {name: value}
    with pytest.raises(NotConfigured, match=f"Driver LinuxDriver: {words}"):
        LinuxDriver(**given)


def test_an_error_about_an_unknown_option_lists_the_known_options() -> None:
    with pytest.raises(
        NotConfigured,
        match=r"no option 'ram_ratio'; near it: ram_allocation_ratio.*; it takes cpu_.*, sysfs",
    ):
        load_driver("linux", {"ram_ratio": "1.0"})
