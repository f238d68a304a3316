"""The linux driver on the machine that runs the tests, beside lscpu, free, lsblk and lspci."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.model.trees.declaration import Declaration
from support.waiting import SECONDS_MAX


@pytest.fixture(scope="module")
def here() -> Declaration:
    return LinuxDriver(reserved_memory_mb=0).declare("here")


def output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=SECONDS_MAX
    ).stdout


def total(declaration: Declaration, *resource_classes: str) -> int:
    return sum(
        int(provider.inventories[each]["total"])
        for provider in declaration.providers
        for each in resource_classes
        if each in provider.inventories
    )


def test_each_node_has_the_cpus_that_lscpu_lists(here: Declaration) -> None:
    listed = output("lscpu", "-p=CPU,NODE").splitlines()
    pairs = [line.split(",") for line in listed if not line.startswith("#")]
    expected = Counter(f"here_numa{node or 0}" for _, node in pairs)
    assert {
        provider.name: total(Declaration((replace(provider, parent=None),)), "VCPU", "PCPU")
        for provider in here.providers
        if provider.inventories.keys() & {"VCPU", "PCPU"}
    } == expected


def test_the_host_has_the_threads_and_architecture_that_lscpu_prints(here: Declaration) -> None:
    fields = dict(
        line.split(":", 1) for line in output("lscpu").splitlines() if line.count(":") == 1
    )
    traits = here.providers[0].traits
    assert f"HW_ARCH_{fields['Architecture'].strip().upper()}" in traits
    assert ("HW_CPU_HYPERTHREADING" in traits) == (int(fields["Thread(s) per core"]) > 1)


def test_the_nodes_have_the_memory_that_free_prints() -> None:
    """A balloon driver may change the memory, so the test reads it before and after."""
    before = int(output("free", "-m").split()[7])
    declared = LinuxDriver().declare("here")
    after = int(output("free", "-m").split()[7])
    # The driver rounds each node down.
    nodes = sum(1 for provider in declared.providers if "MEMORY_MB" in provider.inventories)
    assert min(before, after) - nodes <= total(declared, "MEMORY_MB") <= max(before, after)


def test_the_host_has_the_disks_that_lsblk_lists(here: Declaration) -> None:
    listed = output("lsblk", "--nodeps", "--noheadings", "--bytes", "--output=NAME,TYPE,RM,SIZE")
    disks = sorted(
        int(size) // 1024**3
        for name, kind, removable, size in map(str.split, listed.splitlines())
        if kind == "disk" and removable == "0" and Path(f"/sys/block/{name}/device").exists()
    )
    assert sorted(
        int(provider.inventories["DISK_GB"]["total"])
        for provider in here.providers
        if "DISK_GB" in provider.inventories
    ) == [size for size in disks if size]


def test_the_disk_with_the_root_is_reserved(here: Declaration) -> None:
    source = output("findmnt", "--noheadings", "--output=SOURCE", "/").strip()
    parents = output("lsblk", "--inverse", "--list", "--noheadings", "--output=NAME,TYPE", source)
    sizes = {
        int(output("lsblk", "--nodeps", "--noheadings", "--bytes", "--output=SIZE", f"/dev/{name}"))
        for name, kind in map(str.split, parents.splitlines())
        if kind == "disk"
    }
    reserved = {
        provider.inventories["DISK_GB"]["reserved"]
        for provider in here.providers
        if "DISK_GB" in provider.inventories
    }
    assert {size // 1024**3 for size in sizes} <= reserved


def test_the_host_has_the_pci_functions_that_lspci_lists(here: Declaration) -> None:
    listed = [line.split() for line in output("lspci", "-D", "-n").splitlines()]
    endpoints = {
        f"here_pci_{address}"
        for address, kind, *_ in listed
        if kind[:2] not in ("05", "06", "08")
        and kind[:4] not in ("0c05", "1101")
        and not Path(f"/sys/bus/pci/devices/{address}/physfn").exists()
    }
    assert {each.name for each in here.providers if "_pci_" in each.name} == endpoints
