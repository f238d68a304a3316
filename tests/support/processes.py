"""What the system says about the worker of a live server."""

from __future__ import annotations

from pathlib import Path

from support.live_server import LiveServer


def resident_megabytes(server: LiveServer) -> float:
    """The memory of the one worker."""
    (worker,) = server.worker_ids()
    status = Path(f"/proc/{worker}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def socket_count(server: LiveServer) -> int:
    """How many sockets the one worker has open."""
    (worker,) = server.worker_ids()
    found = 0
    for entry in Path(f"/proc/{worker}/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return found
