"""Unix sockets of `roost serve`, and sockets that systemd hands over."""

from __future__ import annotations

import fcntl
import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from support.api_client import ApiClient, http_client
from support.roost_command import roost
from support.servers.live_server import LiveServer, clean_environment
from support.waiting import SECONDS_MAX, wait_until


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("roost.example", timeout=SECONDS_MAX)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS_MAX)
        self.sock.connect(str(self._path))


class UnixServer(LiveServer):
    """`roost serve` at a unix socket."""

    def __init__(self, directory: Path, *options: str, workers: int = 1) -> None:
        self.path = directory / "r.sock"
        super().__init__(
            f"sqlite:///{directory}/placement.db",
            directory,
            workers=workers,
            options=options,
        )

    def _place(self) -> list[str]:
        return ["--unix-socket", str(self.path)]

    def _connection(self) -> http.client.HTTPConnection:
        return UnixConnection(self.path)


@pytest.fixture
def directory(short_directory: Path) -> Path:
    """The directory of the sockets of a test."""
    return short_directory


def test_a_server_at_a_unix_socket_answers_and_removes_its_file(directory: Path) -> None:
    with UnixServer(directory, "--socket-mode", "600") as server:
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
        answer = server.client().put("/traits/CUSTOM_UNIX")
        assert answer.headers["location"] == "http://roost.example/traits/CUSTOM_UNIX"
        assert '] unix "PUT /traits/CUSTOM_UNIX"' in server.log
        assert f"Roost at unix:{server.path} on" in server.log
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(SECONDS_MAX) == 0
        assert not server.path.exists()


def test_the_file_of_a_dead_server_is_replaced(directory: Path) -> None:
    with UnixServer(directory) as server:
        server.kill()
        assert server.path.exists()
        server.start()
        assert server.client().get("/resource_providers").status == 200
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o660


def refusal(path: Path, tmp_path: Path, status: int = 78) -> str:
    done = roost("serve", "--db", f"sqlite:///{tmp_path}/x.db", "--unix-socket", str(path))
    assert done.status == status
    assert not (tmp_path / "x.db").exists()
    return done.err


def test_a_socket_in_use_is_refused_and_left_alone(directory: Path, tmp_path: Path) -> None:
    path = directory / "used.sock"
    with closing(socket.socket(socket.AF_UNIX)) as used:
        used.bind(str(path))
        used.listen()
        said = refusal(path, tmp_path, status=1)
        assert "another server listens there. Stop that server" in said
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.connect(str(path))


def test_a_file_that_is_no_socket_is_refused_and_left_alone(
    directory: Path, tmp_path: Path
) -> None:
    path = directory / "precious"
    path.write_text("kept")
    assert "a file that is no socket" in refusal(path, tmp_path)
    assert path.read_text() == "kept"


def test_a_missing_directory_is_named(directory: Path, tmp_path: Path) -> None:
    assert "its directory does not exist" in refusal(directory / "no" / "r.sock", tmp_path)


def test_a_path_that_is_too_long_is_named(directory: Path, tmp_path: Path) -> None:
    assert "too long" in refusal(directory / ("long" * 30), tmp_path)


def test_a_mode_that_is_none_is_refused(directory: Path) -> None:
    done = roost("serve", "--unix-socket", str(directory / "r.sock"), "--socket-mode", "rw")
    assert done.status == 78
    assert "octal digits" in done.err


def test_workers_share_the_connections_of_a_unix_socket(directory: Path) -> None:
    with UnixServer(directory, workers=3) as server, ExitStack() as stack:
        wait_for_workers(server, 3)
        made = 0
        # A busy machine may delay a worker. Without shares, one worker would get all connections.
        while min(connections(server), default=0) < 5:
            assert made < 300
            client = stack.enter_context(closing(UnixConnection(server.path)))
            assert http_client(client).get("/").status == 200
            made += 1
        assert sum(connections(server)) == made


def wait_for_workers(server: UnixServer, count: int) -> None:
    """Wait until each worker has read all providers, so that all of them accept connections."""
    wait_until(lambda: server.log.count("Read 0 providers") >= count, lambda: server.log)


def connections(server: UnixServer) -> list[int]:
    """How many clients each worker has at the socket of the server."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    connected = {
        f"socket:[{row[6]}]" for row in rows if row[7:] == [str(server.path)] and row[5] == "03"
    }
    return [len(connected & open_files(worker)) for worker in server.worker_ids()]


def open_files(worker: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{worker}/fd").iterdir():
        with suppress(OSError):
            found.add(str(entry.readlink()))
    return found


def test_a_unix_socket_and_a_port_may_both_be_served(directory: Path) -> None:
    with (
        LiveServer(
            f"sqlite:///{directory}/placement.db",
            directory,
            options=("--unix-socket", str(directory / "r.sock")),
        ) as server,
        closing(UnixConnection(directory / "r.sock")) as connection,
    ):
        assert server.client().get("/resource_providers").status == 200
        assert http_client(connection).get("/resource_providers").status == 200


# What systemd does: the sockets are descriptors from 3 on, and the variables name the process.
ACTIVATE = """
import os, socket, sys
for number, kept in enumerate(sys.argv[1].split(",")):
    os.dup2(int(kept), 3 + number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(number + 1))
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def activated(directory: Path) -> Iterator[tuple[ApiClient, ApiClient]]:
    """Clients of a server at a port and at a unix socket, both of which systemd made."""
    path = directory / "a.sock"
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        closing(socket.socket(socket.AF_UNIX)) as unix,
        (directory / "server.log").open("wb") as log,
    ):
        unix.bind(str(path))
        unix.listen()
        # Above 4, so that no copy takes the place of a socket that is still needed; and free here.
        kept = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 50) for one in (port, unix)]
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        script = str(Path(sys.executable).with_name("roost"))
        arguments = [script, "serve", "--workers", "2", "--db", f"sqlite:///{directory}/p.db"]
        process = subprocess.Popen(
            [sys.executable, "-c", ACTIVATE, ",".join(map(str, kept)), *arguments],
            pass_fds=kept,
            env=clean_environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            connection = http.client.HTTPConnection(
                "127.0.0.1", port.getsockname()[1], timeout=SECONDS_MAX
            )
            with closing(connection), closing(UnixConnection(path)) as other:
                yield http_client(connection), http_client(other)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS_MAX) == 0, (directory / "server.log").read_text()
            for descriptor in kept:
                os.close(descriptor)


def test_sockets_that_systemd_hands_over_are_served(
    activated: tuple[ApiClient, ApiClient],
) -> None:
    # The connections wait until the server has started.
    for client in activated:
        assert client.get("/resource_providers").json == {"resource_providers": []}
