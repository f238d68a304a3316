"""A misspelt command is answered with the commands that the operator may have meant."""

from __future__ import annotations

import shlex

import click
import pytest

from roost.cli.main import cli
from roost.cli.shared.group import CommandGroup
from support.roost_command import roost


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("provder list", "Did you mean 'provider'?"),
        ("candidate VCPU=4", "Did you mean 'candidates'?"),
        ("Doctor", "Did you mean 'doctor'?"),
        ("checkconfig", "Did you mean 'check-config'?"),
        ("provider lst", "Did you mean 'list' or 'set'?"),
        ("tree aply -f rack.yaml", "Did you mean 'apply'?"),
        ("db trigers status", "Did you mean 'triggers'?"),
        ("db triggers stats", "Did you mean 'status'?"),
        ("class creat CUSTOM_A", "Did you mean 'create'?"),
        ("provider list --naem x", "Did you mean '--name'?"),
    ],
)
def test_an_error_names_what_is_alike(command: str, meant: str) -> None:
    outcome = roost(*shlex.split(command))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.rstrip().endswith(meant)


@pytest.mark.parametrize("command", ["qqqq", "provider qqqq"])
def test_an_error_names_nothing_that_is_not_alike(command: str) -> None:
    assert roost(*command.split()).err.rstrip().endswith("No such command 'qqqq'.")


def test_control_characters_of_a_command_are_spelt_out() -> None:
    assert "No such command 'a\\x1bb'." in roost("a\x1bb").err
    assert "No such command 'a\\x1bb'." in roost("provider", "a\x1bb").err


def test_every_group_names_what_is_alike() -> None:
    def groups(group: click.Group) -> list[click.Group]:
        context = click.Context(group)
        below = [group.get_command(context, name) for name in group.list_commands(context)]
        inner = [groups(one) for one in below if isinstance(one, click.Group)]
        return [group, *(one for several in inner for one in several)]

    found = groups(cli)
    assert len(found) > 10
    assert [group.name for group in found if not isinstance(group, CommandGroup)] == []
