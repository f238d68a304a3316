"""`roost serve`: starting, refusing to start, losing workers, stopping."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import threading
from pathlib import Path

import pytest

from ports import reserved_port
from roost.model.identifiers import new_uuid
from support.api_client import Answer
from support.servers.live_server import InstalledServer, LiveServer, clean_environment
from support.servers.preloaded_roost import start_roost
from support.waiting import SECONDS_MAX, wait_until

# systemd starts the service again after the first, and leaves it after the second.
FAILURE = 1
CONFIGURATION = 78

sqlite_only = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def serve_and_fail(
    *arguments: str,
    status: int = CONFIGURATION,
    file_bytes: int | None = None,
    **environment: str,
) -> str:
    """The output of a server that refuses to start; `file_bytes` limits its files."""
    output, written = os.pipe()
    with reserved_port() as port, os.fdopen(output) as stream:
        # Another service may listen at the usual port. The port of a test comes last, so it counts.
        process = start_roost(
            ("serve", "--port", str(port), *arguments),
            clean_environment(environment),
            written,
            file_bytes=file_bytes,
        )
        os.close(written)
        said = stream.read()
    assert process.wait() == status, said
    assert "Traceback" not in said
    return said


@sqlite_only
def test_a_request_in_flight_is_finished_when_the_server_stops(
    database_url: str, tmp_path: Path
) -> None:
    with LiveServer(database_url, tmp_path) as server:
        answers: list[Answer] = []
        # A writer that is inside the gate has locked its first byte, and waiters lock later ones.
        gate = os.open(database_url.removeprefix("sqlite:///") + "-writer", os.O_RDWR)
        fcntl.lockf(gate, fcntl.LOCK_EX, 1)
        body = {"name": "patient", "uuid": new_uuid()}
        request = threading.Thread(
            target=lambda: answers.append(server.client().post("/resource_providers", body))
        )
        request.start()
        wait_until(lambda: has_waiter(gate))
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not listens(server.port))
        assert answers == []
        os.close(gate)
        request.join(SECONDS_MAX)
        assert [answer.status for answer in answers] == [200]
        assert server.process.wait(SECONDS_MAX) == 0


def has_waiter(gate: int) -> bool:
    """Whether a writer of another process waits at the gate of a SQLite database."""
    asked = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 1, 0, 0)
    kind: int = struct.unpack("hhqqi0q", fcntl.fcntl(gate, fcntl.F_GETLK, asked))[0]
    return kind != fcntl.F_UNLCK


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_for_replacement(server: LiveServer, lost: int) -> None:
    """Wait until two workers run and the lost worker is not one of them."""

    def is_replaced() -> bool:
        workers = server.worker_ids()
        return len(workers) == 2 and lost not in workers

    wait_until(is_replaced, lambda: server.log[-2000:])


@sqlite_only
def test_a_worker_that_dies_is_replaced(database_url: str, tmp_path: Path) -> None:
    with LiveServer(database_url, tmp_path) as server:
        lost = server.worker_ids()[0]
        os.kill(lost, signal.SIGKILL)
        wait_for_replacement(server, lost)
        for _ in range(10):
            assert server.client().get("/resource_providers").status == 200
        assert f"Worker {lost} ended (signal 9)" in server.log


@sqlite_only
def test_workers_that_die_again_and_again_do_not_end_the_service(
    database_url: str, tmp_path: Path
) -> None:
    with LiveServer(database_url, tmp_path) as server:
        for _ in range(3):
            lost = server.worker_ids()[0]
            os.kill(lost, signal.SIGKILL)
            wait_for_replacement(server, lost)
        assert server.process is not None
        assert server.process.poll() is None
        assert server.client().get("/resource_providers").status == 200


@sqlite_only
def test_workers_do_not_outlive_their_server(database_url: str, tmp_path: Path) -> None:
    with LiveServer(database_url, tmp_path) as server:
        workers = server.worker_ids()
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        wait_until(lambda: not any(map(_is_alive, workers)))


def _is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().split(")")[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@sqlite_only
def test_two_servers_on_one_new_database_both_start(database_url: str, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    servers = [LiveServer(database_url, tmp_path / name) for name in ("one", "other")]
    with servers[0], servers[1]:
        uuid = new_uuid()
        servers[0].client().post("/resource_providers", {"name": "shared", "uuid": uuid})
        assert servers[1].client().get(f"/resource_providers/{uuid}").status == 200


def test_a_server_without_authentication_listens_on_loopback_only(tmp_path: Path) -> None:
    said = serve_and_fail("--host", "0.0.0.0", "--db", f"sqlite:///{tmp_path}/x.db")
    assert "--allow-clients-without-authentication" in said
    assert not (tmp_path / "x.db").exists()


def test_an_unavailable_auth_strategy_is_refused_at_start(tmp_path: Path) -> None:
    config_file = tmp_path / "placement.conf"
    config_file.write_text(
        f"[api]\nauth_strategy = keystone\n[placement_database]\n"
        f"connection = sqlite:///{tmp_path}/x.db\n"
    )
    assert "auth_strategy = keystone" in serve_and_fail("--config-file", str(config_file))


def test_a_wrong_value_in_the_configuration_is_refused_at_start(tmp_path: Path) -> None:
    config_file = tmp_path / "placement.conf"
    config_file.write_text("[placement]\nallocation_conflict_retry_count = many\n")
    said = serve_and_fail("--config-file", str(config_file))
    assert "allocation_conflict_retry_count" in said


def test_a_broken_policy_file_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("'placement:usages': 'rule:nowhere'\n")
    config_file = tmp_path / "placement.conf"
    config_file.write_text(
        f"[api]\nauth_strategy = noauth2\n[placement_database]\n"
        f"connection = sqlite:///{tmp_path}/x.db\n"
    )
    assert "policy" in serve_and_fail("--config-file", str(config_file))


def test_a_wrong_option_of_the_command_line_ends_like_a_wrong_configuration() -> None:
    assert "--wrokers" in serve_and_fail("--wrokers", "2")


def test_a_missing_configuration_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.conf" in serve_and_fail("--config-file", f"{tmp_path}/nowhere.conf")


def test_an_unreachable_database_is_named_without_its_password() -> None:
    said = serve_and_fail(
        "--db",
        "postgresql://roost:secret@127.0.0.1:1/placement",
        status=FAILURE,
        OS_PLACEMENT_DATABASE__MAX_RETRIES="1",
    )
    assert "127.0.0.1:1/placement" in said
    assert "secret" not in said


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    # A second Roost would bind with SO_REUSEPORT, and the kernel would let both share the port.
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as taken:
        port = str(taken.getsockname()[1])
        db = f"sqlite:///{tmp_path}/x.db"
        assert port in serve_and_fail("--port", port, "--db", db, status=FAILURE)


@sqlite_only
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.slow
def test_a_signal_to_all_processes_as_a_terminal_sends_it_stops_the_server(
    database_url: str, tmp_path: Path, name: str
) -> None:
    with InstalledServer(database_url, tmp_path) as server:
        assert server.process is not None
        os.killpg(server.process.pid, signal.Signals[name])
        assert server.process.wait(SECONDS_MAX) == 0
        assert "ERROR" not in server.log


@pytest.mark.parametrize("file_bytes", [0, 5_000, 20_000, 100_000, 200_000])
def test_a_disk_that_is_full_at_start_is_named(tmp_path: Path, file_bytes: int) -> None:
    db = f"sqlite:///{tmp_path}/x.db"
    said = serve_and_fail("--demo", "--db", db, status=FAILURE, file_bytes=file_bytes)
    assert "Make room on that disk" in said
    sentences = [line for line in said.splitlines() if line.startswith("roost: ")]
    assert len(sentences) == 1


@sqlite_only
def test_misspelt_options_are_named_once_for_all_workers(database_url: str, tmp_path: Path) -> None:
    config_file = tmp_path / "placement.conf"
    config_file.write_text(
        "[DEFAULT]\ndebgu = true\n[api]\nauth_strategy = noauth2\n[placment]\nx = 1\n"
    )
    options = ("--config-file", str(config_file))
    with LiveServer(database_url, tmp_path, options=options) as server:
        assert server.client().get("/resource_providers").status in (200, 403)
        assert server.log.count("debgu") == 1
        assert server.log.count("Did you mean debug?") == 1
        assert server.log.count("Did you mean [placement]?") == 1


def test_a_dollar_sign_in_the_url_reaches_the_workers(tmp_path: Path) -> None:
    with LiveServer(f"sqlite:///{tmp_path}/a$b.db", tmp_path) as server:
        assert server.client().get("/resource_providers").status == 200
    assert (tmp_path / "a$b.db").exists()
