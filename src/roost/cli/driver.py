"""The command `roost driver` and its subcommands: which drivers there are, and their options."""

from __future__ import annotations

import inspect

import click

from roost.cli.output import Output, OutputForm, output_options, print_output
from roost.cli.table import Table, TableColumn
from roost.cli.terminal import output_console, plain
from roost.cli.words import WORD
from roost.client.drivers.loading import load_driver_class
from roost.client.drivers.option_kinds import as_text
from roost.client.drivers.options import NO_DEFAULT, DriverOption, options_of
from roost.client.drivers.registry import RegisteredDriver, registered_drivers
from roost.model.text import own_lines

_LISTED = (TableColumn("DRIVER"), TableColumn("FROM"), TableColumn("CLASS"), TableColumn("NOTE"))
_OPTIONS = (
    TableColumn("OPTION"),
    TableColumn("TAKES"),
    TableColumn("DEFAULT"),
    TableColumn("HELP"),
)


def complete_drivers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names of drivers, for the shell."""
    names = dict.fromkeys(driver.name for driver in registered_drivers())
    return [name for name in names if name.startswith(incomplete)]


@click.group(short_help="List the drivers of this host, and their options.")
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
    table = Table(_OPTIONS, rows)
    about = inspect.getdoc(found) or ""
    value = {"driver": name, "about": about, "options": table.as_json()}
    if output is OutputForm.TABLE:
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
