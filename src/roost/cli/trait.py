"""The command `roost trait` and its subcommands."""

from __future__ import annotations

from functools import partial

import click

from roost.cli.completers import complete_traits
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import (
    Output,
    OutputForm,
    PlannedChange,
    Table,
    columns_of,
    dry_run_option,
    make_changes,
    output_options,
    print_output,
)
from roost.cli.parameters import WORD
from roost.client.errors import NameInUse
from roost.client.lookup import demand_custom_names, demand_known, demand_traits, provider_argument
from roost.client.placement.placement import Administration
from roost.model.identifiers import is_custom
from roost.model.text import counted, matches, printable, with_next

_LISTED = columns_of("TRAIT, CUSTOM, IN USE")
_PROVIDERS = columns_of("PROVIDER, UUID")
_NAMED_MAX = 5


@click.group(short_help="List, show, create and delete traits.")
def trait() -> None:
    """List, show, create and delete traits.

    \b
    Examples:
      roost trait list --custom
      roost trait show HW_CPU_X86_AVX2
      roost trait create CUSTOM_GOLD
    """


@trait.command(
    "list",
    short_help="List traits.",
    epilog="""\b
Examples:
  roost trait list --custom
  roost trait list 'HW_CPU_X86_*' --in-use
  roost trait list --unused --custom --output csv
""",
)
@click.argument(
    "pattern", type=WORD, metavar="[PATTERN]", required=False, shell_complete=complete_traits
)
@click.option("--custom", is_flag=True, help="Only custom traits.")
@click.option("--in-use", is_flag=True, help="Only traits that some provider has.")
@click.option("--unused", is_flag=True, help="Only traits that no provider has.")
@output_options
@connection_options
def list_traits(
    *,
    connection: ConnectionSettings,
    pattern: str | None,
    custom: bool,
    in_use: bool,
    unused: bool,
    output: OutputForm,
) -> None:
    """List the traits that the server knows; in a pattern, * and ? stand for any characters."""
    if in_use and unused:
        raise click.UsageError("--in-use and --unused contradict each other.")
    with connection.open() as transport:
        server = Administration(transport)
        associated = server.trait_names(associated=True)
        names = associated if in_use else server.trait_names()
    rows = [
        [name, is_custom(name), name in associated]
        for name in sorted(names)
        if (not custom or is_custom(name))
        and not (unused and name in associated)
        and (pattern is None or matches(name, pattern))
    ]
    print_output(Output.of(Table(_LISTED, rows)), output)


@trait.command(
    short_help="Show which providers have a trait.",
    epilog="""\b
Examples:
  roost trait show HW_CPU_X86_AVX2
  roost trait show CUSTOM_GOLD --json
""",
)
@click.argument("name", type=WORD, metavar="TRAIT", shell_complete=complete_traits)
@output_options
@connection_options
def show(*, connection: ConnectionSettings, name: str, output: OutputForm) -> None:
    """List the providers that have this trait."""
    with connection.open() as transport:
        server = Administration(transport)
        demand_traits(server, [name])
        found = sorted(
            server.matching_providers([("required", name)]), key=lambda body: body["name"]
        )
    value = {
        "trait": name,
        "custom": is_custom(name),
        "providers": [{"uuid": body["uuid"], "name": body["name"]} for body in found],
    }
    table = Table(_PROVIDERS, [[body["name"], body["uuid"]] for body in found])
    print_output(Output(table, value), output)
    if not found:
        click.echo("No provider has this trait.", err=True)


@trait.command(
    short_help="Create custom traits.",
    epilog="""\b
Examples:
  roost trait create CUSTOM_GOLD CUSTOM_SILVER
  roost trait create CUSTOM_GOLD --dry-run
""",
)
@click.argument("names", type=WORD, metavar="TRAIT...", nargs=-1, required=True)
@dry_run_option
@output_options
@connection_options
def create(
    *, connection: ConnectionSettings, names: tuple[str, ...], output: OutputForm, dry_run: bool
) -> None:
    """Create custom traits, unless the server knows them already."""
    demand_custom_names(names, "trait")
    with connection.open() as transport:
        server = Administration(transport)
        known = server.known_traits(names)
        new = [
            PlannedChange(name, {"trait": name}, partial(server.create_trait, name))
            for name in dict.fromkeys(names)
            if name not in known
        ]
        make_changes("created", new, output, dry_run=dry_run)


@trait.command(
    short_help="Delete custom traits.",
    epilog="""\b
Examples:
  roost trait delete CUSTOM_GOLD --dry-run
  roost trait delete CUSTOM_GOLD CUSTOM_SILVER
""",
)
@click.argument(
    "names", type=WORD, metavar="TRAIT...", nargs=-1, required=True, shell_complete=complete_traits
)
@dry_run_option
@output_options
@connection_options
def delete(
    *, connection: ConnectionSettings, names: tuple[str, ...], output: OutputForm, dry_run: bool
) -> None:
    """Delete custom traits that no provider has; if a provider has one, none is deleted."""
    demand_custom_names(names, "trait")
    names = tuple(dict.fromkeys(names))
    with connection.open() as transport:
        server = Administration(transport)
        known = server.known_traits(names)
        for name in names:
            if name not in known:
                demand_known(name, server.trait_names(), "trait", "roost trait list --custom")
        for name in names:
            _demand_unused(server, name)
        deletions = [
            PlannedChange(name, {"trait": name}, partial(server.delete_trait, name))
            for name in names
        ]
        make_changes("deleted", deletions, output, dry_run=dry_run)


def _demand_unused(server: Administration, name: str) -> None:
    found = server.matching_providers([("required", name)])
    if found:
        names = sorted(body["name"] for body in found)
        some = ", ".join(map(printable, names[:_NAMED_MAX]))
        more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        first = provider_argument(min(found, key=lambda body: body["name"]))
        raise NameInUse(
            with_next(
                f"{name} is on {counted(len(found), 'provider')} ({some}{more}), so it stays.",
                f"roost provider set {first} --remove-trait {name} --dry-run",
            )
        )
