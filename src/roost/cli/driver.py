"""The options that choose a driver, and the command `roost driver`, which describes drivers."""

from __future__ import annotations

import inspect
import shlex
import socket
from typing import Any

import click

from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import (
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.shared.parameters import WORD, adding
from roost.cli.shared.terminal import output_console, plain
from roost.client.drivers.options import NO_DEFAULT, DriverOption, as_text, options_of
from roost.client.drivers.registry import RegisteredDriver, load_driver_class, registered_drivers
from roost.client.ownership.owner_names import DEFAULT_OWNER
from roost.client.tree_file.schema import PROVIDER_NAME_LENGTH_MAX
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.secrets import shown_words
from roost.model.text import own_lines


class KeyValueType(click.ParamType[tuple[str, str]]):
    """A key and its value; in a file, the options of this type are one mapping."""

    name = "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """The key and the value of a text."""
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not equals or not key or key.startswith("-"):
            self.fail(f"{shown_words([str(value)])[0]}: write it as KEY=VALUE", param, ctx)
        return key, rest

    def split_envvar_value(self, rv: str) -> list[str]:
        """The pairs in a variable, with spaces between them; a value with spaces has quotes."""
        try:
            return shlex.split(rv)
        except ValueError as error:
            raise click.BadParameter(f"{error}; close the quotes.") from None


KEY_VALUE = KeyValueType()


def _uuid(text: str) -> str:
    """A uuid, in the spelling that servers use."""
    if not is_uuid(text):
        raise click.BadParameter(f"{text}: that is no UUID; leave the option out for a new one")
    return canonical_uuid(text)


def _host_name(text: str) -> str:
    """The name of a provider, which servers take if it is neither empty nor too long."""
    if not 0 < len(text) <= PROVIDER_NAME_LENGTH_MAX:
        raise click.BadParameter(f"{text!r}: a name has 1 to {PROVIDER_NAME_LENGTH_MAX} characters")
    return text


driver_options = adding(
    click.option(
        "--driver",
        "driver_name",
        metavar="NAME",
        help="What describes the host: `linux` (this machine), `libvirt` (as libvirt sees it), "
        "`file` (a tree file), one that `roost driver list` names, or package.module:Class.",
    ),
    click.option(
        "--option",
        "driver_options",
        type=KEY_VALUE,
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the driver, such as path=tree.yaml for `file`; may be repeated.",
    ),
    click.option(
        "--name",
        metavar="NAME",
        type=_host_name,
        default=socket.gethostname,
        show_default="this host's name",
        help="Name of the provider that stands for the host.",
    ),
    click.option(
        "--uuid",
        metavar="UUID",
        type=_uuid,
        help="Its uuid. [default: that of the provider with this name, or a new one]",
    ),
)

owner_option = click.option(
    "--owner",
    metavar="NAME",
    default=DEFAULT_OWNER,
    show_default=True,
    help="Name to write under. The agent leaves alone what other owners wrote.",
)


_LISTED = columns_of("DRIVER, FROM, CLASS, NOTE")
_OPTION_COLUMNS = columns_of("OPTION, TAKES, DEFAULT, HELP")


def complete_drivers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names of drivers, for the shell."""
    names = dict.fromkeys(driver.name for driver in registered_drivers())
    return [name for name in names if name.startswith(incomplete)]


@click.group(cls=CommandGroup, short_help="List the drivers of this host, and their options.")
def driver() -> None:
    """List the drivers that `roost agent --driver` takes, and their options.

    \b
    Examples:
      roost driver list
      roost driver show linux
    """


@driver.command(
    "list",
    short_help="List drivers.",
    epilog="""\b
Examples:
  roost driver list
  roost driver list --json
""",
)
@output_options
def list_drivers(*, output: OutputForm) -> None:
    """List the drivers of Roost, and those that installed packages register."""
    drivers = registered_drivers()
    rows = [[each.name, each.package, each.location, _note(each, drivers)] for each in drivers]
    print_output(Output.of(Table(_LISTED, rows)), output)


@driver.command(
    short_help="Show the options of a driver.",
    epilog="""\b
Examples:
  roost driver show linux
  roost driver show mypackage.mymodule:MyDriver --json
""",
)
@click.argument("name", type=WORD, metavar="DRIVER", shell_complete=complete_drivers)
@output_options
def show(*, name: str, output: OutputForm) -> None:
    """Show what a driver describes, and the options that it takes."""
    found = load_driver_class(name)
    accepted = options_of(found)
    rows = [
        [option.name, option.kind.words, _default(option), option.help]
        for option in accepted.options.values()
    ]
    table = Table(_OPTION_COLUMNS, rows)
    about = inspect.getdoc(found) or ""
    value = {"driver": name, "about": about, "options": table.as_json()}
    if output.is_for_people:
        output_console().print(plain(own_lines(*(about or name).split("\n"), "")))
    print_output(Output(table, value), output)
    if not accepted.options:
        click.echo("The driver describes no options.", err=True)


def _note(driver: RegisteredDriver, drivers: list[RegisteredDriver]) -> str:
    if driver.is_hidden:
        return "not used: a driver of Roost has this name"
    is_alone = [each.name for each in drivers].count(driver.name) == 1
    return "" if is_alone or driver.is_built_in else "not used: several packages have this name"


def _default(option: DriverOption) -> str:
    if option.required:
        return "(required)"
    return "" if option.default in (NO_DEFAULT, None) else as_text(option.default)
