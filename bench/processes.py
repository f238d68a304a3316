"""CPU and memory of the processes of a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# The last bits of a clock id select the CPU time of a process with all its threads, ended ones too.
# The clock is exact to the nanosecond; /proc/PID/stat counts in 10 ms.
_CPU_CLOCK = 2


def family(process_id: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield process_id
    with suppress(FileNotFoundError, ProcessLookupError):
        for children in Path(f"/proc/{process_id}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from family(int(child))


def cpu_seconds(process_id: int) -> float:
    """The CPU, user and system, that a process and its descendants have used."""
    used = 0.0
    for member in family(process_id):
        with suppress(OSError):
            used += time.clock_gettime((~member << 3) | _CPU_CLOCK)
    return used


def worker_memory(process_id: int, field: str = "VmRSS") -> int:
    """Resident bytes of the largest process, which is a worker; `VmHWM` gives their peak."""
    return max(_status_bytes(member, field) for member in family(process_id))


def forget_peaks(process_id: int) -> None:
    """Let the peak of each process begin anew, at what is resident now."""
    for member in family(process_id):
        with suppress(FileNotFoundError, ProcessLookupError):
            Path(f"/proc/{member}/clear_refs").write_text("5")


def _status_bytes(process_id: int, field: str) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return 0
