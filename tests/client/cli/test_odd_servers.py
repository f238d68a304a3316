"""Whatever a server answers, a command ends with a status and a sentence, never with a traceback.

Every command of the client is here by itself: those of `roost.cli.main` with an address.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import pytest

from roost.api.application import Application
from roost.cli.main import cli
from roost.cli.shared import connection
from roost.cli.shared.connection import CommandRetryPolicy
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names
from support.api_client import application_client, settings_for
from support.moving.sample_cloud import make_sample_cloud
from support.properties import first_seed, many
from support.roost_command import Outcome, roost
from support.stubs.odd_server import OddServer, draw_fault
from support.worlds.notation import provider_uuid

TREE = """\
owner: ops
providers:
- name: rack
  inventories:
    DISK_GB: {total: 10}
  traits: [CUSTOM_T1]
  children:
  - name: shelf
    inventories:
      VCPU: {total: 4}
- name: host 1
  traits: [CUSTOM_T2]
"""
# What stands for an argument of a command, by its name. Others are names of a provider.
ARGUMENTS = {
    "words": "VCPU=1",
    "uuid": provider_uuid("consumer 1"),
    "question": "explain",
    "pattern": "CUSTOM",
}
PROVIDER = "numa 1"
APPLY = ["-f", "tree.yaml"]
# Further arguments; one line for each run.
LINES: dict[str, list[list[str]]] = {
    "agent": [["--driver", "file", "--option", "path=host.yaml", "--name", "host 1", "--once"]],
    "audit": [
        [],
        ["--against", "known.txt", "--json"],
        ["--against", "known.txt", "--delete", "--at-most-percent", "100"],
    ],
    "candidates": [["VCPU=1", "MEMORY_MB=10"], ["VCPU=1", "--order", "pack", "--json"]],
    "capacity": [["VCPU=1", "--by-root"]],
    "changes": [[], ["--kind", "usage", "--json"]],
    "class create": [["CUSTOM_NEW"]],
    "class delete": [["CUSTOM_GOLD"]],
    "class list": [[]],
    "class show": [["CUSTOM_GOLD"]],
    "consumer list": [[]],
    "consumer show": [[provider_uuid("consumer 1")]],
    "doctor": [[], ["--json"]],
    "explain": [["VCPU=1"], ["VCPU=900"]],
    "fragmentation": [["VCPU=1"]],
    "import": [["--db", "sqlite:///copy.db", "--dry-run"]],
    "owner list": [["--check"]],
    "owner rebind": [["ops", "--from", "{url}", "--dry-run"]],
    "owner show": [["ops", "--check"]],
    "provider create": [["host 9", "--parent", "host 1", "--inventory", "VCPU=9"]],
    "provider adopt": [["numa 1", "--uuid", provider_uuid("another")]],
    "provider merge": [["numa 1", "--into", "numa 2", "--force"], ["disks", "--into", "late"]],
    "provider rename": [["host 1", "host 9", "--descendants"]],
    "provider delete": [["disks"], ["late", "--with-children"]],
    "provider set": [
        ["numa 1", "--inventory", "VCPU=9", "--add-trait", "CUSTOM_T2", "--rename", "numa 9"]
    ],
    "aggregate add": [[provider_uuid("rack"), "numa 1"]],
    "aggregate remove": [[provider_uuid("rack"), "numa 1"]],
    "aggregate show": [[provider_uuid("rack")]],
    # It keeps an address in a file, and asks no server.
    "context add": [],
    "claim": [["VCPU=1"], ["--on", "numa 1", "VCPU=1", "--json"]],
    "move": [
        [provider_uuid("consumer 1"), "--to", "numa 1", "VCPU=1"],
        [provider_uuid("consumer 1"), "VCPU=1", "--dry-run"],
    ],
    "release": [[provider_uuid("consumer 1")]],
    "resilience": [[], ["--json"]],
    "top": [["--once", "--interval", "0.1"]],
    "trait create": [["CUSTOM_NEW"]],
    "trait delete": [["CUSTOM_T2"]],
    "trait show": [["CUSTOM_T1"]],
    "tree apply": [APPLY],
    "tree diff": [APPLY],
    "tree show": [[], ["host 1"]],
    # It serves until it is stopped; tests/web/test_gateway.py has odd servers behind it.
    "ui": [],
    "usage": [[], ["--by-project"], ["--project", "a project"]],
    "whatif": [
        ["--drain", "host 1", "capacity", "VCPU=1"],
        ["--drain", "host 1", "explain", "VCPU=1"],
    ],
    "why": [["host 1", "VCPU=900"]],
}


def client_commands(
    command: click.Command = cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Each command that talks to a server, by its words."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from client_commands(found, (*words, name))
    elif any({"--url", "--from-url"} & set(option.opts) for option in command.params):
        yield " ".join(words), command


def lines_of(name: str, command: click.Command) -> list[list[str]]:
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    usual = [ARGUMENTS.get(str(argument.name), PROVIDER) for argument in arguments]
    return LINES.get(name, [usual])


COMMANDS = [
    [*name.split(), *line]
    for name, command in client_commands()
    for line in lines_of(name, command)
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a database of the sample cloud."""
    directory = tmp_path_factory.mktemp("template")
    database = Database(DatabaseOptions(f"sqlite:///{directory}/x.db", sqlite_synchronous=False))
    prepare_schema(database, upgrade=True)
    database.write(sync_standard_names)
    application = Application(settings_for(database, directory), database)
    make_sample_cloud(application_client(application))
    application.close()
    return directory


@pytest.fixture
def server(
    template: Path, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OddServer]:
    """A server with the sample cloud, which commands talk to without a pause."""
    without_pause = partial(CommandRetryPolicy, sleep=lambda _: None)
    monkeypatch.setattr(connection, "CommandRetryPolicy", without_pause)
    (tmp_path / "tree.yaml").write_text(TREE)
    (tmp_path / "known.txt").write_text(f"{provider_uuid('consumer 1')}\n")
    (tmp_path / "host.yaml").write_text("providers:\n- name: host 1\n  traits: [CUSTOM_T2]\n")
    shutil.copy(template / "x.db", tmp_path / "x.db")
    database = Database(DatabaseOptions(f"sqlite:///{tmp_path}/x.db", sqlite_synchronous=False))
    application = Application(settings_for(database, tmp_path), database)
    send = application_client(application).send
    with OddServer(send) as writer:
        applied = roost("tree", "apply", "-f", "tree.yaml", "--url", writer.url)
        assert applied.status == 0, applied
    (tmp_path / "tree.yaml").write_text(TREE.replace("total: 4", "total: 5"))
    with OddServer(send) as stub:
        # Records belong to the server of an address.
        bound = roost("owner", "rebind", "ops", "--from", writer.url, "--url", stub.url)
        assert bound.status == 0, bound
        shutil.copytree(state, tmp_path / "kept")
        stub.forget()
        yield stub
    application.close()


def check(outcome: Outcome) -> None:
    assert "Traceback" not in outcome.err + outcome.out
    if outcome.status:
        assert outcome.err.strip() or outcome.out.strip()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_ends_with_a_sentence_whatever_the_server_answers(
    server: OddServer, command: list[str], tmp_path: Path
) -> None:
    option = "--from-url" if command[0] == "import" else "--url"
    given = [word.format(url=server.url) for word in command]
    words = [*given, option, server.url, "--token", "admin"]
    sound = roost(*words)
    check(sound)
    assert "Usage:" not in sound.err, f"add a line of arguments to LINES: {sound.err}"
    assert server.known, "the command asked nothing"
    seed = first_seed()
    for number in range(many(12)):
        source = random.Random(f"{seed} {number} {command}")
        spoilt, fault = source.choice(server.known), draw_fault(source)
        server.play(spoilt, fault)
        for directory in ("state", "roost-import"):
            shutil.rmtree(tmp_path / directory, ignore_errors=True)
        shutil.copytree(tmp_path / "kept", tmp_path / "state")
        try:
            check(roost(*words))
        except BaseException as error:
            error.add_note(f"{spoilt} had {fault.text} (seed {seed}, number {number})")
            raise
