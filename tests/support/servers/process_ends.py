"""The moment at which killed processes have closed their sockets; for `cluster/`, too."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

_END_SECONDS = 60.0


def wait_until_gone(process_ids: Iterable[int]) -> float:
    """Wait until these processes have closed their sockets; return the moment."""
    waiting = list(process_ids)
    deadline = time.monotonic() + _END_SECONDS
    while waiting := [one for one in waiting if _has_sockets(one)]:
        assert time.monotonic() < deadline, f"processes {waiting} do not end"
        time.sleep(0.002)
    return time.monotonic()


def _has_sockets(process_id: int) -> bool:
    """Whether a process runs, or threads of a process whose first thread has ended."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0]
        threads = len(list(Path(f"/proc/{process_id}/task").iterdir()))
    except OSError:
        return False
    return state not in "ZX" or threads > 1
