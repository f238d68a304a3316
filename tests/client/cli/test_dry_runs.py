"""Every `--dry-run` says what would happen, and never that it has happened."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, all_commands, roost
from support.servers.live_server import LiveServer
from support.transports.tampering import one_server

OLD, NEW = "OLD", "NEW"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with schema."""
    url = f"sqlite:///{tmp_path_factory.mktemp('dry')}/roost.db"
    assert roost("db", "sync", "--db", url).status == 0
    return url


def assert_planned(outcome: Outcome) -> None:
    """Demand that each line of standard output is about what would happen."""
    assert outcome.status in (0, 3), outcome.err
    assert outcome.lines
    assert [line for line in outcome.lines if "would" not in line.lower()] == []


CLIENT = {
    "provider set": "{host} --inventory VCPU=9 --inventory VGPU=1 --remove-inventory DISK_GB "
    "--add-trait {old} --rename {host}-2 --add-aggregate {uuid}",
    "provider create": "{host}-9 --parent {host} --inventory VCPU=9 --trait {old}",
    "provider delete": "{host}",
    "aggregate add": "{uuid} {host}",
    "aggregate remove": "{rack} {host}",
    "context add": "lab --url {url}",
    "context use": "there",
    "context remove": "there",
    "claim": "VCPU=1 --in-tree {host}",
    "move": "{consumer} --to {host} DISK_GB=2",
    "release": "{consumer}",
    "provider adopt": "{host} --uuid 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11",
    "provider rename": "{host} {host}-3",
    "provider merge": "{host} --into {other}",
    "audit": "--against known.txt --type {old} --delete --at-most-percent 100",
    "trait create": "{new}",
    "trait delete": "{old}",
    "class create": "{new}",
    "class delete": "{old}",
    "tree apply": "-f tree.yaml --owner dry",
    "owner rebind": "dry --from {url}",
    "agent": "--driver file --option path=tree.yaml --name {host} --uuid {uuid}",
}
SERVER = {
    "db sync": "--db {db}",
    "db export": "all.jsonl --db {db}",
    "db import": "there.jsonl --db {empty}",
    "db triggers install": "--db {db}",
    "db triggers remove": "--db {db}",
    "import": "--from-url {url} --token admin --db {empty} --work-dir work",
    "token create": "--file tokens --user ann --project shop --role admin",
    "token revoke": "--file tokens {id}",
}


def test_every_command_with_a_dry_run_is_tested_here() -> None:
    found = {
        name
        for name, command in all_commands().items()
        if any("--dry-run" in option.opts for option in command.params if _is_option(option))
    }
    assert found == CLIENT.keys() | SERVER.keys()


def _is_option(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option)


@one_server
@pytest.mark.parametrize("name", CLIENT)
def test_a_command_of_the_client_says_what_would_happen(
    live_providers: LiveProviders, name: str
) -> None:
    host, old = live_providers.name("host"), live_providers.custom(OLD)
    live_providers.add("host", totals={"VCPU": 8, "DISK_GB": 10}, aggregates=["rack"])
    live_providers.add("other", totals={"DISK_GB": 1})
    Path("known.txt").write_text(f"{live_providers.uuid('other')}\n")
    for noun in ("trait", "class"):
        assert roost(noun, "create", old).status == 0
    tree = {"name": host, "inventories": {"VCPU": 9, "VGPU": 1}, "traits": [old]}
    child = {"name": f"{host}_child", "parent": host}
    Path("tree.yaml").write_text(json.dumps({"providers": [tree, child]}))
    if name == "owner rebind":
        assert roost("tree", "apply", *CLIENT["tree apply"].split()).status == 0
    words = CLIENT[name].format(
        host=host,
        other=live_providers.name("other"),
        uuid=live_providers.uuid("host"),
        rack=live_providers.uuid("rack"),
        consumer=live_providers.claim("instance", other={"DISK_GB": 1})
        if name in ("move", "release")
        else "",
        old=old,
        new=live_providers.custom(NEW),
        url=os.environ["ROOST_URL"],
    )
    assert roost("context", "add", "there", "--url", os.environ["ROOST_URL"]).status == 0
    generation = live_providers.generation("host")
    outcome = roost(*name.split(), *words.split(), "--dry-run")
    if name == "audit":
        # Its table has what is wrong, whether or not it would be deleted.
        assert outcome.status in (0, 3), outcome.err
    else:
        assert_planned(outcome)
    assert live_providers.generation("host") == generation


@one_server
@pytest.mark.parametrize("name", SERVER)
def test_a_command_of_the_server_says_what_would_happen(
    server: LiveServer, database: str, name: str
) -> None:
    made = roost("token", "create", "--json", *SERVER["token create"].split())
    assert made.status == 0, made.err
    assert roost("db", "export", "there.jsonl", "--db", database).status == 0
    words = (
        SERVER[name]
        .format(db=database, empty="sqlite:///empty.db", url=server.url, id=made.json["id"])
        .split()
    )
    outcome = roost(*name.split(), *words, "--dry-run")
    if name.startswith("db triggers"):
        # Its dry run prints the SQL, if there is anything to do.
        assert outcome.status == 0
        assert "triggers are" not in outcome.out
        return
    if name == "token create":
        assert outcome.err.startswith("Would add to ")
        as_json = roost(*name.split(), *words, "--dry-run", "--json").json
        assert as_json["dry_run"] is True
        assert "token" not in as_json
        return
    assert_planned(outcome)
    assert not Path("empty.db").exists()
