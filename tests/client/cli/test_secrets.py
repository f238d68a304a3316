"""Secrets stay hidden: tokens, passwords in addresses, and options of drivers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from roost.client.drivers.driver import DeclaringDriver
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.store import FileOwnershipStore
from roost.model.trees.declaration import Declaration, DeclaredProvider
from support.roost_command import roost
from support.stubs.placement_stub import PlacementStub, Reply, closed_port_url

# The SDK deprecates its own default configuration; Python shows that in tests only.
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB:PendingDeprecationWarning")

SECRET = "geheim"
UUID = "5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11"
HOLDER = """
import fcntl, os, sys
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print(os.getpid(), file=lock, flush=True)
print("held", flush=True)
sys.stdin.read()
"""
ARGUMENTS = [
    *("--token", SECRET, "--once", f"--password={SECRET}"),
    *("--option", f"api_key={SECRET}", f"--option=passwd={SECRET}"),
    *("--url", f"http://ann:{SECRET}@host"),
]


class Driver(DeclaringDriver):
    """A driver that logs in somewhere."""

    def __init__(self, size: int = 1, **options: str) -> None:
        if "api_key" in options and len(options["api_key"]) < 3:
            raise ValueError(f"api_key {options['api_key']!r} is too short")

    def declare(self, nodename: str) -> Declaration:
        return Declaration((DeclaredProvider(nodename, inventories={"VCPU": {"total": 1}}),))


class NumberedDriver(Driver):
    """A driver whose secret is a number."""

    def __init__(self, pin: int) -> None:
        super().__init__()


@pytest.fixture
def secretive(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("secretive")
    vars(module).update(Driver=Driver, NumberedDriver=NumberedDriver)
    monkeypatch.setitem(sys.modules, "secretive", module)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """Records of the owner `agent`, which another process holds."""
    records = tmp_path / "records"
    record = OwnershipRecord({UUID: OwnedProvider("host", created=True)})
    FileOwnershipStore("agent", records).save(UUID, record)
    command = [sys.executable, "-c", HOLDER, str(records / "agent.lock"), *ARGUMENTS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield records
        process.communicate()


# -- command lines


@pytest.mark.parametrize(
    "command",
    [
        ["owner", "list", "--json"],
        ["owner", "list", "--output", "csv"],
        ["owner", "show", "agent", "--json"],
        ["owner", "show", "agent"],
        ["tree", "apply", "-f", "tree.yaml", "--owner", "agent"],
    ],
    ids=" ".join,
)
def test_the_command_line_of_the_process_that_holds_the_records_has_no_secrets(
    held: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The whole command is printed, however long it is.
    monkeypatch.setattr("roost.client.ownership.store.COMMAND_LENGTH_MAX", 10_000)
    Path("tree.yaml").write_text("providers: [{name: host}]")
    outcome = roost(*command, "--records", str(held))
    printed = " ".join((outcome.out + outcome.err).split())
    assert SECRET not in printed
    assert "--token *** --once --password=***" in printed
    assert "--option api_key=*** --option=passwd=*** --url http://***@host" in printed


# -- options of drivers


@pytest.mark.usefixtures("secretive")
@pytest.mark.parametrize("key", ["api_key", "passwd", "db-password", "accessToken", "PASSPHRASE"])
@pytest.mark.parametrize("place", ["command line", "variable", "file"])
def test_secret_options_of_a_driver_are_never_printed(
    monkeypatch: pytest.MonkeyPatch, key: str, place: str
) -> None:
    arguments = ["--driver", "secretive:Driver", "--name", "host"]
    if place == "command line":
        arguments += ["--option", f"{key}={SECRET}"]
    elif place == "variable":
        monkeypatch.setenv("ROOST_AGENT_OPTIONS", f"{key}={SECRET}")
    else:
        Path("agent.yaml").write_text(yaml.safe_dump({"options": {key: SECRET}}))
        arguments += ["--config", "agent.yaml"]
    for action in (
        ["--dry-run", "--offline", "-v", "--debug"],
        ["--dry-run", "--offline", "-v", "--output", "json"],
        ["--show-config"],
        ["--show-config", "--json"],
    ):
        outcome = roost("agent", *arguments, *action)
        assert outcome.status == 0, outcome.err
        assert SECRET not in outcome.out + outcome.err
        assert "--output" in action or key in outcome.out + outcome.err


@pytest.mark.usefixtures("secretive")
def test_options_that_are_no_secrets_are_printed() -> None:
    options = ["--option", "key_file=/etc/ssl/key.pem", "--option", "disks=sda"]
    shown = roost("agent", "--driver", "secretive:Driver", *options, "--show-config").out
    assert "key_file: /etc/ssl/key.pem" in shown
    assert "disks: sda" in shown


@pytest.mark.usefixtures("secretive")
@pytest.mark.parametrize(
    ("driver", "option", "words"),
    [
        ("Driver", "api_key=zz", "api_key '***' is too short"),
        ("NumberedDriver", "pin=zz", "option pin is '***', but takes a whole number"),
    ],
)
def test_an_error_about_a_secret_option_does_not_have_its_value(
    driver: str, option: str, words: str
) -> None:
    arguments = ["--driver", f"secretive:{driver}", "--option", option]
    outcome = roost("agent", *arguments, "--dry-run", "--offline")
    assert outcome.status == 78
    assert words in outcome.err


@pytest.mark.parametrize("text", ["token: 271828182", "token: 271828182.0"])
def test_a_token_that_yaml_takes_for_a_number_is_text(text: str) -> None:
    with PlacementStub(Reply(401)) as stub:
        Path("agent.yaml").write_text(f"driver: linux\nurl: {stub.url}\n{text}\n")
        outcome = roost("agent", "--config", "agent.yaml", "--dry-run")
        assert stub.received[0].headers["x-auth-token"] == text.removeprefix("token: ")
    assert "27182" not in outcome.out + outcome.err


# -- the token


def test_a_token_may_stand_in_a_file_or_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("token").write_text(f"{SECRET}\n")
    with PlacementStub(otherwise=lambda _: Reply(body={"resource_providers": []})) as stub:
        show = ["tree", "show", "--url", stub.url]
        assert roost(*show, "--token-file", "token").status == 0
        monkeypatch.setenv("ROOST_TOKEN", "of-variable")
        assert roost(*show).status == 0
        # What the command line says takes precedence.
        assert roost(*show, "--token-file", "token").status == 0
        tokens = [
            request.headers["x-auth-token"]
            for request in stub.received
            if request.path.startswith("/resource_providers")
        ]
    assert tokens == [SECRET, "of-variable", SECRET]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--token-file", "nowhere"], "The token file nowhere cannot be read: No such file"),
        (["--token-file", "binary"], "The token file binary cannot be read: it is no text"),
        (["--token-file", "empty"], "the token is empty"),
        (["--token-file", "empty", "--token", SECRET], "leave one of them out"),
    ],
)
def test_a_token_file_that_cannot_be_used_is_an_error(arguments: list[str], words: str) -> None:
    Path("binary").write_bytes(b"\xff\xfe\x00")
    Path("empty").write_text("\n")
    outcome = roost("provider", "list", "--url", "http://127.0.0.1:1", *arguments)
    assert outcome.status == 1
    assert words in outcome.err
    assert SECRET not in outcome.err


@pytest.mark.parametrize("command", [["agent"], ["provider", "list"], ["import"]], ids=" ".join)
def test_help_says_how_to_keep_a_token_secret(command: list[str]) -> None:
    text = " ".join(roost(*command, "--help").out.split())
    assert "list of processes: better use $ROOST_TOKEN or --token-file" in text


def test_the_agent_takes_its_token_from_the_first_place_that_has_one() -> None:
    Path("token").write_text(f"{SECRET}\n")
    with PlacementStub(otherwise=lambda _: Reply(401)) as stub:
        Path("agent.yaml").write_text(f"driver: linux\nurl: {stub.url}\ntoken-file: token\n")
        roost("agent", "--config", "agent.yaml", "--dry-run")
        roost("agent", "--config", "agent.yaml", "--dry-run", "--token", "typed")
        tokens = [request.headers["x-auth-token"] for request in stub.received]
    assert tokens == [SECRET, "typed"]


# -- addresses


def test_a_password_in_an_address_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port_url() as url:
        address = url.replace("://", f"://ann:{SECRET}@")
        cloud = {
            "auth_type": "password",
            "auth": {"auth_url": address, "username": "u", "password": SECRET, "project_name": "p"},
        }
        Path("clouds.yaml").write_text(yaml.safe_dump({"clouds": {"one": cloud}}))
        Path("secure.yaml").write_text("clouds: {}")
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "clouds.yaml")
        monkeypatch.setenv("OS_CLIENT_SECURE_FILE", "secure.yaml")
        for server in (["--url", address], ["--os-cloud", "one"]):
            outcome = roost("provider", "list", *server)
            assert outcome.status == 1
            assert SECRET not in outcome.out + outcome.err


def test_a_redirect_with_a_password_is_told_without_it() -> None:
    target = f"http://ann:{SECRET}@elsewhere/placement"
    with PlacementStub(otherwise=lambda _: Reply(302, headers={"Location": target})) as stub:
        outcome = roost("provider", "list", "--url", stub.url)
    assert "redirects to http://***@elsewhere/placement" in outcome.err
