"""The help of the commands of the client."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from roost.cli.main import cli
from support.roost_command import roost
from support.waiting import SECONDS_MAX

COMMANDS = [
    *(
        "agent",
        "driver list",
        "driver show",
        "tree show",
        "tree export",
        "tree apply",
        "tree diff",
        "top",
        "import",
    ),
    *("candidates", "explain", "why", "capacity", "whatif", "fragmentation", "resilience"),
    *(f"provider {verb}" for verb in ("list", "show", "tree", "create", "set", "delete")),
    *(f"provider {verb}" for verb in ("adopt", "rename", "merge")),
    *("owner list", "owner show"),
    *(f"context {verb}" for verb in ("add", "use", "list", "show", "remove")),
    *("consumer list", "consumer show", "claim", "move", "release", "usage", "doctor", "audit"),
    "changes",
    *(f"aggregate {verb}" for verb in ("list", "show", "add", "remove")),
    *("completion", "help", "man"),
    *(f"{noun} {verb}" for noun in ("trait", "class") for verb in ("list", "show")),
    *(f"{noun} {verb}" for noun in ("trait", "class") for verb in ("create", "delete")),
]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_of_the_command(name: str) -> None:
    text = roost(*name.split(), "-h").out
    assert f"\n    roost {name} " in text or f"\n    roost {name}\n" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_sentence_of_help(name: str) -> None:
    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert len(options) > 5 or name in (
        *("completion", "help", "man", "driver list", "driver show", "context list"),
        "context show",
    )
    for option in options:
        assert option.help, option.name
        assert option.help.rstrip().endswith((".", "]")), option.help


@pytest.mark.parametrize(
    "name", ["", "driver", "tree", "owner", "provider", "consumer", "trait", "class"]
)
def test_the_short_help_of_every_command_fits_into_its_line(name: str) -> None:
    outcome = roost(*name.split(), "--help")
    assert outcome.status == 0
    # click ends a short help that is too long with an ellipsis.
    assert "..." not in outcome.out.partition("Commands:")[2]


_MODULES_AFTER = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from roost.cli.main import main
main()
"""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_help_and_the_version_import_no_command(option: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _MODULES_AFTER, option],
        capture_output=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    imported = set(json.loads(run.stderr))
    assert "roost.cli.main" in imported
    assert not {"sqlalchemy", "oslo_config", "numpy", "yaml", "urllib3"} & imported
    rooms = {name.split(".")[1] for name in imported if name.startswith("roost.")}
    assert rooms == {"cli", "model"}
    assert not {"roost.cli.serve", "roost.cli.tree", "roost.cli.shared.connection"} & imported


def test_the_help_has_a_line_for_each_command() -> None:
    listed = roost("--help").out.partition("Commands:")[2]
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert f"\n  {name} " in listed
        assert command.get_short_help_str(limit=200) in listed
