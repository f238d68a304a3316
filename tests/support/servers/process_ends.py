"""The moment at which killed processes have closed their sockets; for `cluster/`, too."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from support.waiting import wait_until


def wait_until_gone(process_ids: Iterable[int]) -> float:
    """Wait until these processes have closed their sockets; return the moment."""
    waiting = list(process_ids)
    wait_until(
        lambda: not any(map(_has_sockets, waiting)), lambda: f"processes {waiting} do not end"
    )
    return time.monotonic()


def _has_sockets(process_id: int) -> bool:
    """Whether a process runs, or threads of a process whose first thread has ended."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0]
        threads = len(list(Path(f"/proc/{process_id}/task").iterdir()))
    except OSError:
        return False
    return state not in "ZX" or threads > 1
