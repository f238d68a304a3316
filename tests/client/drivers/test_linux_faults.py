"""The linux driver on machines whose files vanish or cannot be read: it drops no provider."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.drivers.linux.captures import Capture
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.linux.files import Files
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import MachineUnreadable
from roost.model.trees.declaration import Declaration
from support.client.captured_machines import CAPTURES, captured
from support.client.faulty_files import FaultyFiles
from support.properties import is_long_run, many

T = TypeVar("T")

MACHINES = {path.stem: captured(path.stem) for path in sorted(CAPTURES.glob("*.txt"))}


def declare(files: Files) -> Declaration:
    return declare_machine(read_machine(files), "m1", MachineOptions())


WHOLE = {name: declare(capture) for name, capture in MACHINES.items()}


def leaves(capture: Capture) -> list[str]:
    """The files and links of a machine without the directories of devices."""
    return sorted(
        path
        for path, entry in capture.entries.items()
        if entry.kind in ("=", "->")
        and not any(capture.is_below(path, each) for each in capture.entries)
    )


def directories(capture: Capture) -> list[str]:
    parents = {path.rpartition("/")[0] for path in capture.entries}
    return sorted(parent for parent in parents if parent.count("/") > 2)


def dropped(whole: Declaration, declared: Declaration) -> list[str]:
    """The providers that are neither declared below the same parent nor unread."""
    parents = {provider.name: provider.parent for provider in declared.providers}
    return [
        provider.name
        for provider in whole.providers
        if parents.get(provider.name, "") != provider.parent
        and not (provider.name not in parents and declared.unread.covers(provider.name))
    ]


def altered(whole: Declaration, declared: Declaration) -> list[str]:
    """The providers that offer something else than before."""
    before = {provider.name: provider.inventories for provider in whole.providers}
    return [
        provider.name
        for provider in declared.providers
        if provider.inventories != before.get(provider.name, provider.inventories)
    ]


def sampled(cases: list[T]) -> list[T]:
    """All cases in a long run, otherwise every third one."""
    return cases[:: 1 if is_long_run() else 3]


@pytest.mark.parametrize("name", MACHINES)
def test_each_single_file_may_vanish_or_be_unreadable(name: str) -> None:
    capture = MACHINES[name]
    faults = [{"vanished": frozenset({path})} for path in leaves(capture)] + [
        {"unreadable": frozenset({path})} for path in [*leaves(capture), *directories(capture)]
    ]
    for fault in sampled(faults):
        try:
            declared = declare(FaultyFiles(capture, **fault))
        except MachineUnreadable:
            continue
        assert not dropped(WHOLE[name], declared), fault
        # A disk that the host uses would be offered, for instance.
        assert not altered(WHOLE[name], declared), fault


@pytest.mark.parametrize("name", MACHINES)
def test_each_single_file_may_be_missing(name: str) -> None:
    """As in the moment in which another process replaces it: no provider has another name."""
    capture = MACHINES[name]
    paths = [
        path
        for path, entry in capture.entries.items()
        if entry.kind == "=" or fnmatchcase(path, "/sys/block/*/device")
    ]
    for path in sampled(paths):
        rest = {other: entry for other, entry in capture.entries.items() if other != path}
        try:
            declared = declare(FaultyFiles(Capture(rest)))
        except MachineUnreadable:
            continue
        assert not dropped(WHOLE[name], declared), path
        assert not dropped(declared, WHOLE[name]), path


@settings(max_examples=many(50))
@given(st.data())
def test_any_files_may_vanish_or_be_unreadable(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(MACHINES)))
    capture = MACHINES[name]
    # Without CPUs and memory there is nothing to report, so most examples spare them.
    spared = data.draw(st.sampled_from(["/sys/devices/system", "/nothing"]))
    paths = st.sampled_from([path for path in leaves(capture) if not path.startswith(spared)])
    places = st.sampled_from([path for path in directories(capture) if not path.startswith(spared)])
    files = FaultyFiles(
        capture,
        vanished=data.draw(st.frozensets(paths, max_size=8)),
        unreadable=data.draw(st.frozensets(paths | places, max_size=4)),
    )
    try:
        declared = declare(files)
    except MachineUnreadable:
        return
    assert not dropped(WHOLE[name], declared)
    assert not altered(WHOLE[name], declared)


@pytest.mark.parametrize(
    ("gone", "provider"),
    [
        ("/sys/bus/pci/devices/0000:17:00.0", "m1_pci_0000:17:00.0"),
        ("/sys/block/sda", "m1_disk_wwn-0x5000cca2a1d3f0b7"),
    ],
)
def test_a_device_whose_directory_is_gone_is_no_longer_declared(gone: str, provider: str) -> None:
    """The driver reads it while an operator pulls it out."""
    files = FaultyFiles(MACHINES["two-socket-server"], gone=frozenset({gone}))
    declared = declare(files)
    assert dropped(WHOLE["two-socket-server"], declared) == [provider]
    assert not declared.unread.names
    assert not declared.unread.prefixes
