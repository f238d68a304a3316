"""The `roost` command in a process of its own, before a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from support.waiting import SECONDS_MAX

_PROGRAM = "from roost.cli.main import main; main()"


class PtyCommand:
    """A command whose terminal a test reads and types at; variables are added to this process's."""

    def __init__(self, *words: str, **variables: str) -> None:
        self._mine, its = pty.openpty()
        self._shown = b""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *words],
            stdin=its,
            stdout=its,
            stderr=its,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40", **variables},
        )
        os.close(its)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._mine)

    def read_until(self, condition: Callable[[bytes], bool]) -> bytes:
        """All that the terminal has shown, once this condition holds."""
        deadline = time.monotonic() + SECONDS_MAX
        while not condition(self._shown):
            assert time.monotonic() < deadline, self._shown[-2000:]
            if not self._read():
                assert condition(self._shown), self._shown[-2000:]
        return self._shown

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._mine, key.encode())

    def ended(self) -> int:
        """The exit status, once the command ends."""
        deadline = time.monotonic() + SECONDS_MAX
        while self._process.poll() is None and time.monotonic() < deadline:
            # A full terminal would keep the command waiting.
            self._read()
        return self._process.wait(SECONDS_MAX)

    def _read(self) -> bool:
        """Read what is there within a moment; false once the terminal has no more writers."""
        if not select.select([self._mine], [], [], 0.05)[0]:
            return True
        try:
            self._shown += os.read(self._mine, 65536)
        except OSError:
            return False
        return True
