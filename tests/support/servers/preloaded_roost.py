"""The `roost` command in a process of its own, without the time of its imports.

`roost serve` imports modules for more than a second, which is longer than most tests take. One
process imports them once, and forks itself for each command. A forked command has the arguments,
the environment, the directory, the output and the limits that its caller gives.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from support.waiting import SECONDS_MAX

MODULES = (
    "roost.cli.main",
    "roost.cli.serve",
    "roost.store.databases.mysql",
    "roost.store.databases.postgresql",
    "roost.store.databases.sqlite",
    "roost.store.migrations.runner",
    "psycopg",
    "pymysql",
    "sqlalchemy.dialects.mysql.pymysql",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
)
# systemd hands sockets over from this descriptor on.
FIRST_HANDED_OVER = 3
_MESSAGE_BYTES = 1 << 20


class RoostProcess:
    """A command that was started, with the methods of `subprocess.Popen` that tests call."""

    def __init__(self, parent: _Parent, process_id: int) -> None:
        self._parent = parent
        self.pid = process_id

    def poll(self) -> int | None:
        """The exit status as soon as the process has ended; minus the signal that ended it."""
        return self._parent.exit_status(self.pid)

    def wait(self, timeout: float = SECONDS_MAX) -> int:
        """Wait for the end of the process, and return its exit status."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("roost", timeout)
            time.sleep(0.01)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def start_roost(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    *,
    file_bytes: int | None = None,
    listener: int | None = None,
) -> RoostProcess:
    """Start a command in a new session, with both outputs in the file descriptor `output`.

    `file_bytes` limits the size of each file that the command writes. `listener` is a listening
    socket, which the command gets as systemd would hand it over.
    """
    return _parent().start(
        {
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": os.getcwd(),
            "open_files": resource.getrlimit(resource.RLIMIT_NOFILE),
            "file_bytes": file_bytes,
            "listens": listener is not None,
        },
        [output] if listener is None else [output, listener],
    )


class _Parent:
    """The process that has imported the modules, as the tests see it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                pass_fds=[theirs.fileno()],
                # A key that interrupts the tests must not end it before the servers.
                start_new_session=True,
            )
        self._lock = threading.Lock()
        self._started: list[int] = []
        self._ended: dict[int, int] = {}

    def start(self, command: Mapping[str, Any], descriptors: list[int]) -> RoostProcess:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(command).encode()], descriptors)
            while not self._started:
                self._receive()
            return RoostProcess(self, self._started.pop())

    def exit_status(self, process_id: int) -> int | None:
        with self._lock:
            self._socket.setblocking(False)
            try:
                while True:
                    self._receive()
            except BlockingIOError:
                return self._ended.get(process_id)
            finally:
                self._socket.setblocking(True)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()

    def _receive(self) -> None:
        data = self._socket.recv(_MESSAGE_BYTES)
        assert data, "the process that starts commands has ended"
        message = json.loads(data)
        if "started" in message:
            self._started.append(message["started"])
            # The system may give a new process the number of one that has ended.
            self._ended.pop(message["started"], None)
        else:
            self._ended[message["ended"]] = message["status"]


@cache
def _parent() -> _Parent:
    parent = _Parent()
    atexit.register(parent.end)
    return parent


# In the process that has imported the modules.


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each command. The caller in the child gets the command; the parent never returns."""
    woken, waker = socket.socketpair()
    for end in (woken, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_ended(requests)
        if requests not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, _MESSAGE_BYTES, 2)
        if not data:
            os._exit(0)
        process_id = os.fork()
        if process_id == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            output, *listeners = descriptors
            for descriptor in (1, 2):
                os.dup2(output, descriptor)
            for unused in (requests, woken, waker):
                unused.close()
            os.close(output)
            for listener in listeners:
                _hand_over(listener)
            command: dict[str, Any] = json.loads(data)
            return command
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(json.dumps({"started": process_id}).encode())


def _hand_over(listener: int) -> None:
    """Put a listening socket where systemd puts the first one."""
    if listener != FIRST_HANDED_OVER:
        os.dup2(listener, FIRST_HANDED_OVER)
        os.close(listener)


def _tell_ended(requests: socket.socket) -> None:
    while True:
        try:
            process_id, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if process_id == 0:
            return
        ended = {"ended": process_id, "status": os.waitstatus_to_exitcode(status)}
        requests.send(json.dumps(ended).encode())


def _find_entry_points() -> None:
    """Load what the libraries publish, which takes a fifth of the start of a server."""
    importlib.import_module("roost.configuration.unknown_names").options_by_name()
    importlib.import_module("roost.api.policy.policy").rule_defaults()


def _main(descriptor: int) -> NoReturn:
    main, *_ = (importlib.import_module(name) for name in MODULES)
    _find_entry_points()
    command = _serve(socket.socket(fileno=descriptor))
    # The streams of the parent may be of another kind than those of the command: pipe or file.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    sys.argv = ["roost", *command["arguments"]]
    os.environ.clear()
    os.environ.update(command["environment"])
    if command["listens"]:
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
    os.chdir(command["directory"])
    resource.setrlimit(resource.RLIMIT_NOFILE, command["open_files"])
    if command["file_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (command["file_bytes"],) * 2)
    main.main()
    sys.exit()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
