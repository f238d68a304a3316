"""A capture describes the same machine as the files that it was made of."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.client.drivers.linux.captures import Capture, CapturedPath, open_files, parse_capture
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.linux.files import Directory
from roost.client.drivers.linux.recorder import Recorder, capture_machine
from roost.client.drivers.machine.values import MachineUnreadable
from roost.client.errors import NotConfigured
from support.client.captured_machines import CAPTURES, captured

MACHINES = sorted(path.stem for path in CAPTURES.glob("*.txt"))


def unpack(capture: Capture, root: Path) -> None:
    """Write the files of a capture below a directory."""
    for name, entry in capture.entries.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "->":
            path.symlink_to(entry.text)
        elif entry.kind == "/":
            path.mkdir()
        else:
            path.write_text(entry.text + "\n")


@pytest.mark.parametrize("name", MACHINES)
def test_a_capture_of_a_directory_describes_the_same_machine(name: str, tmp_path: Path) -> None:
    unpack(captured(name), tmp_path)
    machine = read_machine(captured(name))
    assert read_machine(Directory(tmp_path)) == machine
    assert read_machine(parse_capture(capture_machine(str(tmp_path)))) == machine


@pytest.mark.parametrize("name", MACHINES)
def test_a_capture_contains_only_files_that_the_driver_reads(name: str) -> None:
    recorder = Recorder(captured(name))
    read_machine(recorder)
    assert recorder.capture().entries == captured(name).entries


def test_a_capture_keeps_the_reason_why_a_file_is_unreadable() -> None:
    text = (
        "/proc/cpuinfo = processor : 0\n"
        "/proc/meminfo = MemTotal: 4194304 kB\n"
        "/sys/bus/pci/devices/0000:01:00.0/numa_node ! Input/output error\n"
        "/sys/block/loop0/\n"
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
        "/proc/cpuinfo = flags : fpu lm\n"
        "/proc/meminfo = MemTotal: 9 kB\n"
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
    assert machine.disks == here.disks
