"""A capture describes the same machine as the files that it was made of."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.client.drivers.linux.captures import (
    Capture,
    CapturedPath,
    mask_ids,
    open_files,
    parse_capture,
)
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.linux.files import Directory
from roost.client.drivers.linux.recorder import Recorder, capture_machine
from roost.client.drivers.machine.values import Disk, MachineUnreadable
from roost.client.errors import NotConfigured
from support.client.captured_machines import CAPTURES, captured, unpack

MACHINES = sorted(path.stem for path in CAPTURES.glob("*.txt"))


@pytest.mark.parametrize("name", MACHINES)
def test_a_capture_of_a_directory_describes_the_same_machine(name: str, tmp_path: Path) -> None:
    unpack(captured(name), tmp_path)
    machine = read_machine(captured(name))
    assert read_machine(Directory(tmp_path)) == machine
    again = read_machine(parse_capture(capture_machine(str(tmp_path))))
    assert replace(again, disks=()) == replace(machine, disks=())
    assert list(map(without_id, again.disks)) == list(map(without_id, machine.disks))


def without_id(disk: Disk) -> Disk:
    return replace(disk, world_wide_id=None, serial=None)


@pytest.mark.parametrize("name", MACHINES)
def test_a_capture_contains_only_files_that_the_driver_reads(name: str) -> None:
    recorder = Recorder(captured(name))
    read_machine(recorder)
    assert recorder.capture().entries == captured(name).entries


def test_a_capture_keeps_the_reason_why_a_file_is_unreadable() -> None:
    text = (
        "/sys/devices/system/cpu/online = 0\n"
        "/proc/meminfo = MemTotal: 4194304 kB\n"
        "/sys/bus/pci/devices/0000:01:00.0/driver ! Input/output error\n"
        "/sys/block/loop0/\n"
        "/proc/self/mountinfo =\n"
    )
    recorder = Recorder(parse_capture(text))
    read_machine(recorder)
    assert recorder.capture().written() == text


def test_a_machine_that_the_driver_cannot_describe_is_captured(tmp_path: Path) -> None:
    unpack(parse_capture("/sys/devices/system/cpu/online = what?\n"), tmp_path)
    text = capture_machine(str(tmp_path))
    assert "# The driver cannot describe this machine: /sys/devices/system/cpu/online" in text
    assert "/sys/devices/system/cpu/online = what?\n" in text


def test_a_capture_keeps_of_a_long_file_only_the_lines_that_the_driver_reads(
    tmp_path: Path,
) -> None:
    cpuinfo = "\n".join(
        f"processor : {cpu}\nmodel name : A\nserial : 7\nflags : fpu lm\n" for cpu in range(99)
    )
    unpack(Capture({"/proc/cpuinfo": CapturedPath("=", cpuinfo)}), tmp_path)
    unpack(parse_capture("/proc/meminfo = MemTotal: 9 kB\n    MemFree: 5 kB\n"), tmp_path)
    unpack(parse_capture("/sys/devices/system/cpu/online = 0-98\n"), tmp_path)
    assert capture_machine(str(tmp_path)).endswith(
        "/sys/devices/system/cpu/online = 0-98\n"
        "/proc/meminfo = MemTotal: 9 kB\n"
        "/proc/cpuinfo = flags : fpu lm\n"
    )


def test_a_capture_has_indented_lines_and_comments() -> None:
    capture = parse_capture("# first\n\n/a = one\n    two\n/b =\n/c -> ../d\n")
    assert capture.entries == {
        "/a": CapturedPath("=", "one\ntwo"),
        "/b": CapturedPath("="),
        "/c": CapturedPath("->", "../d"),
    }


@pytest.mark.parametrize("line", ["nothing", "a = relative", "/a: colon", "    indented first"])
def test_an_error_names_the_line_that_cannot_be_parsed(line: str) -> None:
    with pytest.raises(MachineUnreadable, match=r"m.txt, line 2: expected '/path = contents'"):
        parse_capture(f"# comment\n{line}\n", origin="m.txt")


def test_an_error_names_a_path_that_is_in_a_capture_twice() -> None:
    with pytest.raises(MachineUnreadable, match="line 2: /a "):
        parse_capture("/a = 1\n/a = 2\n")


def test_an_error_names_a_root_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match=r"root=.*nowhere"):
        LinuxDriver(root=tmp_path / "nowhere").declare("m1")


def test_an_error_names_a_root_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(NotConfigured, match=r"root=.*picture"):
        open_files(str(tmp_path / "picture"))


def test_an_error_names_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    unpack(parse_capture("/sys/devices/system/cpu/online = 0\n"), tmp_path)
    unpack(parse_capture("/proc/meminfo = MemTotal: 9 kB\n"), tmp_path)
    # Even root cannot read a directory as a file.
    (tmp_path / "proc" / "cpuinfo").mkdir(parents=True)
    with pytest.raises(MachineUnreadable, match="/proc/cpuinfo cannot be read: Is a directory"):
        read_machine(Directory(tmp_path))


def test_a_command_captures_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m roost.client.drivers.linux`."""
    runpy.run_module("roost.client.drivers.linux", run_name="__main__")
    machine = read_machine(parse_capture(capsys.readouterr().out))
    here = read_machine(open_files("/"))
    assert [node.cpus for node in machine.nodes] == [node.cpus for node in here.nodes]
    assert list(map(without_id, machine.disks)) == list(map(without_id, here.disks))


IDS = """\
/sys/block/sda/device/wwid = naa.5000c500a1b2c3d4
/sys/block/sdb/device/wwid = naa.5000c500a1b2c3d4
/sys/block/sdc/device/wwid = naa.5000c500ffffffff
/sys/block/sdd/device/wwid = eui.0000000000000000
/sys/block/vda/serial = WD-WCC4E1234567
/sys/block/dm-0/dm/uuid = mpath-35000c500a1b2c3d4
/sys/block/dm-1/dm/uuid = part1-mpath-35000c500a1b2c3d4
/sys/fs/btrfs/8f3a7c1e-1f0e-4b52-9d0c-3f2a8c6b9e10/devices/sda1/
/sys/block/sda/size = 1234567890
/sys/block/sde -> ../devices/VMBUS:01/fd1d2cbd-ce7c-535c-966b-eb5f811c95f0/host0/block/sde
"""


def test_random_digits_replace_the_ids_in_a_capture() -> None:
    """The driver still finds out which ids are equal, and of which kind they are."""
    masked = mask_ids(parse_capture(IDS))
    written = masked.written()
    for secret in ("5000c500", "ffffffff", "E1234567", "8f3a7c1e", "fd1d2cbd"):
        assert secret not in written.replace("1234567890", "")
    texts = [entry.text for entry in masked.entries.values()]
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].startswith("naa.")
    assert texts[3] == "eui.0"
    assert texts[5].startswith("mpath-")
    assert texts[6] == f"part1-{texts[5]}"
    assert texts[8] == "1234567890"
    assert mask_ids(parse_capture(IDS)).written() != written
