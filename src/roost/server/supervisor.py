"""The supervisor: the process that starts workers, replaces those that die, and stops them.

SIGHUP asks for a reload: the supervisor reads the configuration first. Only if it can be used do
the workers read it, too. A terminal that closes sends the same signal, and then the service stops.

All threads of a worker block the signal of a reload, and one thread waits for it. So a signal that
comes while the worker starts is kept until that thread runs, and no request is interrupted.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from roost.hangups import ControllingTerminal, obey_hangups
from roost.server.poller import STOP_SECONDS
from roost.systemd import SystemdNotifier

_LOG = logging.getLogger(__name__)

RELOAD_SIGNAL = signal.SIGUSR1
_POLL_SECONDS = 1.0
# A worker that lived for longer is replaced at once.
_SOUND_SECONDS = 5.0
_DELAY_SECONDS_MIN = 0.5
_DELAY_SECONDS_MAX = 30.0
# How long a worker may take beyond its own time to stop.
_KILL_SECONDS = 5.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# After this time the supervisor calls a reload done, even if a worker has not said so.
_RELOAD_SECONDS = 20.0
_READY, _RELOADED = b"r", b"l"


def hold_reload_signal() -> None:
    """Keep the signal for later, in this thread and in all that it starts or forks."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {RELOAD_SIGNAL})


def call_at_reload_signal(reload: Callable[[], None]) -> None:
    """Let a thread call `reload` for each signal."""
    hold_reload_signal()

    def attend() -> None:
        while True:
            signal.sigwait({RELOAD_SIGNAL})
            reload()

    threading.Thread(target=attend, name="reload", daemon=True).start()


@dataclass(slots=True)
class _WorkerSlot:
    """One worker that should run: its process, or the time at which the next one starts."""

    process_id: int | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    delay_seconds: float = 0.0


class WorkerLink:
    """The way from a worker to its supervisor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell_ready(self) -> None:
        """Tell that the worker answers requests."""
        os.write(self._descriptor, _READY)

    def tell_reloaded(self) -> None:
        """Tell that the worker has read its configuration again."""
        os.write(self._descriptor, _RELOADED)


class Supervisor:
    """Keeps a number of worker processes running until a signal says stop.

    `reload` reads the configuration in this process, and returns whether the workers shall do so.
    """

    def __init__(
        self,
        workers: int,
        work: Callable[[WorkerLink], None],
        reload: Callable[[], bool],
        *,
        drain_seconds: float = 0.0,
        leave: Callable[[], None] = lambda: None,
        notifier: SystemdNotifier | None = None,
    ) -> None:
        self._work = work
        self._reload = reload
        self._drain_seconds = drain_seconds
        self._leave = leave
        self._notifier = notifier or SystemdNotifier()
        self._terminal = ControllingTerminal()
        self._hung_up = False
        # How many workers have not yet told of the reload, and until when the supervisor waits.
        self._reloading = 0
        self._reload_deadline = 0.0
        self._slots = [_WorkerSlot() for _ in range(workers)]
        self._stopping = False
        self._waker, self._wakened = socket.socketpair()
        # Workers write into it, as `WorkerLink` says.
        self._ready_read, self._ready_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._was_ready = False

    def run(self) -> int:
        """The exit status, after all workers have ended."""
        for end in (self._waker, self._wakened):
            end.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in _STOP_SIGNALS:
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)
        obey_hangups()
        # A worker that has just started keeps the signal until it can obey.
        hold_reload_signal()
        # By default the system ignores SIGCHLD, and the supervisor would not wake up.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        status = 0
        while not self._stopping:
            self._start_missing()
            self._wait(_POLL_SECONDS)
            if self._stopping:
                # The signal may have ended workers that were starting. They are not missed.
                break
            self._attend_reload()
            if not self._reap() and not self._was_ready:
                # A failure that ends the first worker before it serves would end every worker.
                status = 1
                break
        self._notifier.stopping()
        self._stop_workers()
        return status

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _hang_up(self, *_: object) -> None:
        self._hung_up = True

    def _attend_reload(self) -> None:
        """Begin a reload if a signal asks for one, and tell systemd when it is done."""
        if self._hung_up:
            self._hung_up = False
            if self._terminal.was_closed():
                self._stopping = True
            else:
                self._begin_reload()
        if self._reload_deadline and self._reload_is_done():
            self._reload_deadline = 0.0
            self._notifier.ready()

    def _begin_reload(self) -> None:
        self._notifier.reloading()
        self._reload_deadline = time.monotonic() + _RELOAD_SECONDS
        self._reloading = 0
        if self._reload():
            self._reloading = sum(slot.process_id is not None for slot in self._slots)
            self._signal(RELOAD_SIGNAL)

    def _reload_is_done(self) -> bool:
        if self._reloading <= 0:
            return True
        if time.monotonic() < self._reload_deadline:
            return False
        _LOG.warning(
            "%d workers have not read the new configuration within %.0f seconds; they read it as "
            "soon as they can",
            self._reloading,
            _RELOAD_SECONDS,
        )
        return True

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
            for number in (*_STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self._work(WorkerLink(self._ready_write))
            status = 0
        except BaseException:
            _LOG.exception("A worker failed")
        finally:
            logging.shutdown()
            # `os._exit` skips the parent's exit handlers, which a worker must not run.
            os._exit(status)

    def _wait(self, seconds: float) -> None:
        watched = (self._wakened.fileno(), self._ready_read)
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._wakened.fileno() in ready:
            self._wakened.recv(4096)
        if self._ready_read in ready:
            self._hear(os.read(self._ready_read, 4096))

    def _hear(self, told: bytes) -> None:
        """Take note of what workers have told."""
        self._reloading -= told.count(_RELOADED)
        if _READY in told and not self._was_ready:
            self._was_ready = True
            self._notifier.ready()

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
        now = time.monotonic()
        self._signal(signal.SIGTERM)
        self._await_workers(now + self._drain_seconds)
        # From now on the workers accept no connections.
        self._leave()
        self._await_workers(now + self._drain_seconds + STOP_SECONDS + _KILL_SECONDS)
        self._signal(signal.SIGKILL)
        for slot in self._slots:
            if slot.process_id is not None:
                os.waitpid(slot.process_id, 0)

    def _await_workers(self, deadline: float) -> None:
        while self._running() and time.monotonic() < deadline:
            self._wait(0.2)

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
