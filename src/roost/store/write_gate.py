"""Who may write next: SQLite has one writer at a time and no queue of its own."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from types import TracebackType

from roost.store.errors import Busy, DatabaseUnusable

_POLL_SECONDS = 0.001


class WriteGate:
    """Lets one thread of one process pass, by a lock on a file beside the database.

    Without it, SQLite makes waiting writers sleep and try again: the unlucky one waits for
    seconds, and in the end fails. The system frees the lock of a process that was killed.
    """

    def __init__(self, path: str, seconds_max: float) -> None:
        self._path = path
        self._seconds_max = seconds_max
        self._threads = threading.Lock()
        self._file: int | None = None
        self._process_id: int | None = None

    def __enter__(self) -> None:
        deadline = time.monotonic() + self._seconds_max
        if not self._threads.acquire(timeout=self._seconds_max):
            raise self._busy()
        try:
            self._lock_file(deadline)
        except BaseException:
            self._threads.release()
            raise

    def _lock_file(self, deadline: float) -> None:
        # The system's own waiting has no time limit, and a signal to interrupt it only the main
        # thread could get: hence asking again and again.
        file = self._opened()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._busy() from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _busy(self) -> Busy:
        return Busy(f"other writers have not let this one through for {self._seconds_max} seconds")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Give the file back; the next writer opens it again."""
        with self._threads:
            if self._file is not None and self._process_id == os.getpid():
                os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        # A file that was opened before a fork is locked for parent and child together.
        if self._file is None or self._process_id != os.getpid():
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
            except OSError as error:
                raise DatabaseUnusable(
                    f"{self._path} cannot be opened: {error.strerror}. It orders the writers of "
                    "the SQLite database beside it and must belong to the user of the service."
                ) from error
            self._process_id = os.getpid()
        return self._file
