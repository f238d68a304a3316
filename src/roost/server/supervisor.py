"""The supervisor: the process that starts workers, replaces those that die, and stops them."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from roost.server.poller import STOP_SECONDS

_LOG = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
# A worker that lived for longer is replaced at once.
_SOUND_SECONDS = 5.0
_DELAY_SECONDS_MIN = 0.5
_DELAY_SECONDS_MAX = 30.0
# How long a worker may take beyond its own time to stop.
_KILL_SECONDS = 5.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(slots=True)
class _WorkerSlot:
    """One worker that should run: its process, or the time at which the next one starts."""

    process_id: int | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    delay_seconds: float = 0.0


class Supervisor:
    """Keeps a number of worker processes running until a signal says stop."""

    def __init__(
        self,
        workers: int,
        work: Callable[[Callable[[], None]], None],
        drain_seconds: float = 0.0,
    ) -> None:
        self._work = work
        self._stop_seconds = drain_seconds + STOP_SECONDS + _KILL_SECONDS
        self._slots = [_WorkerSlot() for _ in range(workers)]
        self._stopping = False
        self._waker, self._wakened = socket.socketpair()
        # A worker that is ready writes into it.
        self._ready_read, self._ready_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._was_ready = False

    def run(self) -> int:
        """The exit status, after all workers have ended."""
        for end in (self._waker, self._wakened):
            end.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in _STOP_SIGNALS:
            signal.signal(number, self._stop)
        # By default the system ignores SIGCHLD, and the supervisor would not wake up.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        status = 0
        while not self._stopping:
            self._start_missing()
            self._wait(_POLL_SECONDS)
            if not self._reap() and not self._was_ready:
                # A failure that ends the first worker before it serves would end every worker.
                status = 1
                break
        self._stop_workers()
        return status

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _start_missing(self) -> None:
        now = time.monotonic()
        for slot in self._slots:
            if slot.process_id is None and now >= slot.start_at:
                slot.started_at = now
                slot.process_id = self._fork()

    def _fork(self) -> int:
        process_id = os.fork()
        if process_id:
            return process_id
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            # Until the worker installs its own handler, SIGTERM ends it.
            for number in (*_STOP_SIGNALS, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self._work(self._tell_ready)
            status = 0
        except BaseException:
            _LOG.exception("A worker failed")
        finally:
            logging.shutdown()
            # `os._exit` skips the parent's exit handlers, which a worker must not run.
            os._exit(status)

    def _tell_ready(self) -> None:
        os.write(self._ready_write, b"r")

    def _wait(self, seconds: float) -> None:
        watched = (self._wakened.fileno(), self._ready_read)
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._wakened.fileno() in ready:
            self._wakened.recv(4096)
        if self._ready_read in ready:
            self._was_ready = bool(os.read(self._ready_read, 4096))

    def _reap(self) -> bool:
        """Collect workers that ended; return whether all still run."""
        sound = True
        for slot in self._slots:
            if slot.process_id is None:
                continue
            process_id, wait_status = os.waitpid(slot.process_id, os.WNOHANG)
            if process_id:
                sound = False
                self._plan_replacement(slot, os.waitstatus_to_exitcode(wait_status))
        return sound

    def _plan_replacement(self, slot: _WorkerSlot, status: int) -> None:
        now = time.monotonic()
        if now - slot.started_at > _SOUND_SECONDS:
            slot.delay_seconds = 0.0
        else:
            longer = max(_DELAY_SECONDS_MIN, 2 * slot.delay_seconds)
            slot.delay_seconds = min(_DELAY_SECONDS_MAX, longer)
        _LOG.error(
            "Worker %s ended (%s); another one starts in %.1f seconds",
            slot.process_id,
            f"signal {-status}" if status < 0 else f"status {status}",
            slot.delay_seconds,
        )
        slot.process_id = None
        slot.start_at = now + slot.delay_seconds

    def _stop_workers(self) -> None:
        deadline = time.monotonic() + self._stop_seconds
        self._signal(signal.SIGTERM)
        while self._running() and time.monotonic() < deadline:
            self._wait(0.2)
        self._signal(signal.SIGKILL)
        for slot in self._slots:
            if slot.process_id is not None:
                os.waitpid(slot.process_id, 0)

    def _running(self) -> bool:
        for slot in self._slots:
            if slot.process_id is not None and os.waitpid(slot.process_id, os.WNOHANG)[0]:
                slot.process_id = None
        return any(slot.process_id is not None for slot in self._slots)

    def _signal(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.process_id is not None:
                with suppress(ProcessLookupError):
                    os.kill(slot.process_id, number)
