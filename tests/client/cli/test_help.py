"""The help of the commands of the client."""

from __future__ import annotations

import click
import pytest

from roost.cli.main import cli
from support.roost_command import roost

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
    *(f"provider {verb}" for verb in ("list", "show", "tree", "set", "delete")),
    *("owner list", "owner show"),
    *("consumer list", "consumer show", "usage", "doctor", "completion", "man"),
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
    assert len(options) > 5 or name in ("completion", "man", "driver list", "driver show")
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
