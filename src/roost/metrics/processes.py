"""Facts of processes that the system tells: start, namespace, command line, CPU, memory, files."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import lru_cache

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What a process has used so far."""

    cpu_seconds: float
    started_at: float
    resident_bytes: int
    threads: int


def start_ticks(process_id: int) -> int | None:
    """When the process began, in ticks since the start of the system; `None` if there is none.

    A process id is used again; together with this number it names one process.
    """
    fields = _fields(process_id)
    # A zombie counts nothing any more.
    return None if fields is None or fields[0] in b"ZX" else int(fields[19])


def process_namespace() -> int:
    """The number of the namespace in which process ids of this process hold; 0 if not known."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def process_facts(process_id: int) -> ProcessFacts | None:
    """What the process has used; `None` if there is no such process."""
    fields = _fields(process_id)
    if fields is None:
        return None
    return ProcessFacts(
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
        started_at=_boot_time() + int(fields[19]) / _TICKS,
        resident_bytes=int(fields[21]) * _PAGE_BYTES,
        threads=int(fields[17]),
    )


def open_files(process_id: int) -> int | None:
    """How many files and sockets the process has open; `None` if the system does not tell."""
    try:
        return len(os.listdir(f"/proc/{process_id}/fd"))
    except OSError:
        return None


def command_line(process_id: int) -> bytes:
    """The arguments of the process; empty if the system does not tell."""
    return _read(f"/proc/{process_id}/cmdline") or b""


def _fields(process_id: int) -> list[bytes] | None:
    """The fields of `stat` after the name of the program, which may contain anything."""
    text = _read(f"/proc/{process_id}/stat")
    return None if text is None else text.rpartition(b")")[2].split()


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


@lru_cache(maxsize=1)
def _boot_time() -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
