"""SIGHUP to `roost serve`: another policy and another log, without losing a request."""

from __future__ import annotations

import os
import pty
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ports import reserved_port
from support.api_client import ApiClient
from support.servers.live_server import LiveServer, clean_environment
from support.short_paths import short_directory
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.slow

READERS_MAY_NOT_LIST = "'placement:resource_providers:list': 'role:nothing'\n"
LISTS_ARE_FOR_ALL = "'placement:resource_providers:list': '@'\n"


class ReloadedServer(LiveServer):
    """`roost serve` that tells a socket of the test what it would tell systemd."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "placement.conf"
        self.log_begins_at = 0
        self.configure()
        super().__init__(
            f"sqlite:///{directory}/x.db", directory, options=("--config-file", str(self.file))
        )
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.systemd.bind(f"{directory}/notify")
        self.systemd.settimeout(SECONDS_MAX)

    @property
    def log(self) -> str:
        """The log since the test began."""
        return super().log[self.log_begins_at :]

    def configure(self, text: str = "") -> None:
        """Write the configuration file, with these lines behind the usual ones."""
        self.file.write_text(f"[api]\nauth_strategy = noauth2\n{text}")

    def policy(self, name: str, text: str) -> str:
        """Write a policy file; the result is the group that names it."""
        (self.directory / name).write_text(text)
        return f"[oslo_policy]\npolicy_file = {self.directory / name}\n"

    def hang_up(self) -> None:
        """Send SIGHUP, and wait until the server says that it is done."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGHUP)
        assert self.told().startswith("RELOADING=1\n")
        assert self.told() == "READY=1"

    def told(self) -> str:
        """What the server has told systemd next."""
        return self.systemd.recv(4096).decode()

    def _environment(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": f"{self.directory}/notify"}


@pytest.fixture(scope="module")
def running() -> Iterator[ReloadedServer]:
    with short_directory() as directory:
        server = ReloadedServer(directory)
        with server, server.systemd:
            assert server.told() == "READY=1"
            yield server


@pytest.fixture
def server(running: ReloadedServer) -> ReloadedServer:
    """The server of all tests, with the usual configuration, and a log that begins anew."""
    running.configure()
    # A policy.yaml beside the configuration would be in force without being named.
    for left in running.directory.glob("*.yaml"):
        left.unlink()
    running.hang_up()
    running.log_begins_at = 0
    running.log_begins_at = len(running.log)
    return running


def listing_without_role(client: ApiClient) -> int:
    """The status of a list that a caller without any role asks for."""
    return client.get("/resource_providers", x_auth_token="me:mine").status


def test_the_next_request_is_decided_by_the_new_policy(server: ReloadedServer) -> None:
    clients = [server.client() for _ in range(8)]
    assert set(map(listing_without_role, clients)) == {403}
    server.configure(server.policy("other.yaml", LISTS_ARE_FOR_ALL))
    server.hang_up()
    # The connections are those of before, in all workers.
    assert set(map(listing_without_role, clients)) == {200}


def test_the_new_log_levels_and_files_are_in_force(server: ReloadedServer) -> None:
    client = server.client()
    client.get("/traits")
    wait_until(lambda: '"GET /traits"' in server.log)
    server.configure("[DEFAULT]\ndefault_log_levels = placement.requestlog=WARNING\n")
    server.hang_up()
    client.get("/usages")
    server.configure(f"[DEFAULT]\nlog_file = {server.directory}/other.log\n")
    server.hang_up()
    client.get("/resource_classes")
    other = server.directory / "other.log"
    wait_until(lambda: '"GET /resource_classes"' in other.read_text())
    assert '"GET /usages' not in server.log + other.read_text()
    assert '"GET /resource_classes"' not in server.log


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("[placement]\nmax_allocation_candidates = many\n", "max_allocation_candidates"),
        ("[DEFAULT]\ndebug = maybe\n", "debug"),
        ("no group\n[", "line"),
        ("[DEFAULT]\nlog_file = /nowhere/at/all.log\n", "log_file"),
        ("[DEFAULT]\ndefault_log_levels = placement.requestlog=LOUD\n", "LOUD"),
    ],
)
def test_a_bad_configuration_is_refused_and_the_old_one_stays(
    server: ReloadedServer, bad: str, why: str
) -> None:
    good = server.policy("policy.yaml", LISTS_ARE_FOR_ALL)
    server.configure(good)
    server.hang_up()
    server.configure(server.policy("worse.yaml", READERS_MAY_NOT_LIST) + bad)
    server.hang_up()
    assert listing_without_role(server.client()) == 200
    (line,) = [line for line in server.log.splitlines() if "is refused" in line]
    assert why in line
    assert " ERROR " in line
    wait_until(lambda: '"GET /resource_providers"' in server.log)


def test_a_broken_policy_is_refused_and_the_old_one_stays(server: ReloadedServer) -> None:
    server.configure(server.policy("broken.yaml", "'placement:usages': 'rule:nowhere'\n"))
    server.hang_up()
    assert server.client().get("/resource_providers").status == 200
    assert server.log.count("The new configuration is refused") == 1


def test_changes_that_need_a_restart_are_named(server: ReloadedServer) -> None:
    server.configure(
        "[placement_database]\nmax_pool_size = 7\nconnection = sqlite:////nowhere/y.db\n"
        "[DEFAULT]\ndebug = true\n[roost]\nmax_connections = 9\n"
    )
    for _ in range(2):
        server.hang_up()
    lines = [line for line in server.log.splitlines() if "need a restart" in line]
    assert len(lines) == 2
    for line in lines:
        assert "[placement_database]max_pool_size" in line
        assert "[placement_database]connection" in line
        assert "[roost]max_connections" in line
        assert "debug" not in line


def test_a_reload_warns_of_no_deprecated_option_that_the_file_does_not_have(
    server: ReloadedServer,
) -> None:
    server.configure("[DEFAULT]\ndebug = false\n")
    server.hang_up()
    assert "The configuration was read again" in server.log
    assert "deprecated" not in server.log


def test_no_request_is_lost_while_the_server_reloads(server: ReloadedServer) -> None:
    stop = threading.Event()
    statuses: list[set[int]] = []

    def ask() -> None:
        client, seen = server.client(), set[int]()
        statuses.append(seen)
        while not stop.is_set():
            # The client has one connection; `http.client` would tell if the server closed it.
            seen.add(client.get("/resource_providers").status)

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for _ in range(5):
        server.hang_up()
    stop.set()
    for thread in asking:
        thread.join(SECONDS_MAX)
    assert statuses == [{200}] * 4


def test_a_worker_that_starts_anew_has_the_new_policy(server: ReloadedServer) -> None:
    server.configure(server.policy("other.yaml", LISTS_ARE_FOR_ALL))
    server.hang_up()
    before = server.worker_ids()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(set(server.worker_ids()) - set(before)) == 1)
    for _ in range(8):
        assert listing_without_role(server.client()) == 200


def test_the_queries_are_read_again_and_a_new_worker_counts_them(server: ReloadedServer) -> None:
    queries = server.directory / "queries"

    def shown(name: str) -> bool:
        try:
            text = server.client().get("/metrics").body.decode()
        except ConnectionError:
            # No worker listens yet.
            return False
        return f'roost_fits{{name="{name}"}} 0' in text

    queries.write_text("first = resources=VCPU:1\n")
    server.configure(f"[roost]\nmetrics_queries = {queries}\n")
    server.hang_up()
    assert "[roost]metrics_queries changed" in server.log
    assert "need a restart" not in server.log
    wait_until(lambda: shown("first"))
    queries.write_text("second = resources=VCPU:1\n")
    server.hang_up()
    wait_until(lambda: shown("second") and not shown("first"))
    before = server.worker_ids()
    for process_id in before:
        os.kill(process_id, signal.SIGKILL)
    wait_until(lambda: len(set(server.worker_ids()) - set(before)) == len(before))
    wait_until(lambda: shown("second"))
    queries.write_text("second = resources=VCPU\n")
    server.hang_up()
    assert "queries, line 1: the query second cannot be used" in server.log
    assert shown("second")


def test_a_worker_is_replaced_after_a_refused_reload(server: ReloadedServer) -> None:
    server.configure(server.policy("other.yaml", LISTS_ARE_FOR_ALL))
    server.hang_up()
    server.configure("[placement]\nmax_allocation_candidates = many\n")
    server.hang_up()
    for worker in server.worker_ids():
        os.kill(worker, signal.SIGKILL)

    def status_of_a_new_worker() -> int | None:
        try:
            return listing_without_role(server.client())
        except OSError:
            return None

    # The new workers decide by the policy in force.
    wait_until(lambda: status_of_a_new_worker() == 200)


@pytest.mark.parametrize("is_ignored", [False, True], ids=["usual", "nohup"])
def test_a_closed_terminal_stops_the_server_unless_nohup_started_it(
    tmp_path: Path, short_directory: Path, is_ignored: bool
) -> None:
    script = Path(sys.executable).with_name("roost")
    database = f"sqlite:///{tmp_path}/x.db"
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(f"{short_directory}/notify")
    notify.settimeout(SECONDS_MAX)
    environment = clean_environment({"NOTIFY_SOCKET": f"{short_directory}/notify"})
    with reserved_port() as port, notify:
        arguments = ["roost", "serve", "--port", str(port), "--workers", "1", "--db", database]
        process_id, terminal = pty.fork()
        if process_id == 0:
            if is_ignored:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.execve(script, arguments, environment)
        assert notify.recv(100) == b"READY=1"
        os.kill(process_id, signal.SIGHUP)
        assert notify.recv(100).startswith(b"RELOADING=1")
        assert notify.recv(100) == b"READY=1"
        os.close(terminal)
        if is_ignored:
            # The signal of the terminal is one more wish to reload.
            assert notify.recv(100).startswith(b"RELOADING=1")
            assert notify.recv(100) == b"READY=1"
            os.kill(process_id, signal.SIGTERM)
        assert notify.recv(100) == b"STOPPING=1"
        assert os.waitpid(process_id, 0)[1] == 0
