"""The command `roost class` and its subcommands."""

from __future__ import annotations

from functools import partial

import click

from roost.cli.bars import progress_bar
from roost.cli.completers import complete_classes
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
from roost.client.cloud_reader import EVERYTHING, CloudProvider, CloudReader, Facet
from roost.client.errors import NameInUse
from roost.client.lookup import demand_classes, demand_custom_names, demand_known
from roost.client.placement.placement import Administration
from roost.model.identifiers import is_custom
from roost.model.text import matches, with_next

_LISTED = columns_of("RESOURCE CLASS, CUSTOM")
_PROVIDERS = columns_of("PROVIDER, >USED, >CAPACITY, UUID")


@click.group("class", short_help="List, show, create and delete resource classes.")
def resource_class() -> None:
    """List, show, create and delete resource classes.

    \b
    Examples:
      roost class list --custom
      roost class show VGPU
      roost class create CUSTOM_FPGA_LUT
    """


@resource_class.command(
    "list",
    short_help="List resource classes.",
    epilog="""\b
Examples:
  roost class list
  roost class list 'CUSTOM_*' --json
""",
)
@click.argument(
    "pattern", type=WORD, metavar="[PATTERN]", required=False, shell_complete=complete_classes
)
@click.option("--custom", is_flag=True, help="Only custom classes.")
@output_options
@connection_options
def list_classes(
    *, connection: ConnectionSettings, pattern: str | None, custom: bool, output: OutputForm
) -> None:
    """List the classes that the server knows; in a pattern, * and ? stand for any characters."""
    with connection.open() as transport:
        names = Administration(transport).known_resource_classes()
    rows = [
        [name, is_custom(name)]
        for name in sorted(names)
        if (not custom or is_custom(name)) and (pattern is None or matches(name, pattern))
    ]
    print_output(Output.of(Table(_LISTED, rows)), output)


@resource_class.command(
    short_help="Show which providers offer a class.",
    epilog="""\b
Examples:
  roost class show VGPU
  roost class show CUSTOM_FPGA_LUT --output csv
""",
)
@click.argument("name", type=WORD, metavar="CLASS", shell_complete=complete_classes)
@output_options
@connection_options
def show(*, connection: ConnectionSettings, name: str, output: OutputForm) -> None:
    """List the providers that have inventory of this class, with the used amounts.

    Placement finds only providers with room. So this command asks each provider for its
    inventories.
    """
    with connection.open() as transport:
        server = Administration(transport)
        demand_classes(server, [name])
        offering = sorted(
            _offering(server, name, Facet.INVENTORIES, Facet.ALLOCATIONS),
            key=lambda provider: provider.name,
        )
    rows = [
        [
            provider.name,
            provider.used.get(name, 0),
            int(provider.inventory(name).capacity),
            provider.uuid,
        ]
        for provider in offering
    ]
    value = {
        "resource_class": name,
        "custom": is_custom(name),
        "providers": [
            {"provider": {"uuid": uuid, "name": its_name}, "used": used, "capacity": capacity}
            for its_name, used, capacity, uuid in rows
        ],
    }
    print_output(Output(Table(_PROVIDERS, rows), value), output)
    if not rows:
        click.echo("No provider has inventory of this class.", err=True)


@resource_class.command(
    short_help="Create custom classes.",
    epilog="""\b
Examples:
  roost class create CUSTOM_FPGA_LUT
  roost class create CUSTOM_FPGA_LUT --dry-run
""",
)
@click.argument("names", type=WORD, metavar="CLASS...", nargs=-1, required=True)
@dry_run_option
@output_options
@connection_options
def create(
    *, connection: ConnectionSettings, names: tuple[str, ...], output: OutputForm, dry_run: bool
) -> None:
    """Create custom classes, unless the server knows them already."""
    demand_custom_names(names, "resource class")
    with connection.open() as transport:
        server = Administration(transport)
        known = server.known_resource_classes()
        new = [
            PlannedChange(
                name, {"resource_class": name}, partial(server.create_resource_class, name)
            )
            for name in dict.fromkeys(names)
            if name not in known
        ]
        make_changes("created", new, output, dry_run=dry_run)


@resource_class.command(
    short_help="Delete custom classes.",
    epilog="""\b
Examples:
  roost class delete CUSTOM_FPGA_LUT --dry-run
  roost class delete CUSTOM_FPGA_LUT
""",
)
@click.argument(
    "names", type=WORD, metavar="CLASS...", nargs=-1, required=True, shell_complete=complete_classes
)
@dry_run_option
@output_options
@connection_options
def delete(
    *, connection: ConnectionSettings, names: tuple[str, ...], output: OutputForm, dry_run: bool
) -> None:
    """Delete custom classes of which no provider has inventory.

    The server alone knows that at once, so a dry run asks each provider.
    """
    demand_custom_names(names, "resource class")
    names = tuple(dict.fromkeys(names))
    with connection.open() as transport:
        server = Administration(transport)
        known = server.known_resource_classes()
        for name in names:
            demand_known(name, known, "resource class", "roost class list --custom")
        if dry_run:
            for name in names:
                _demand_unused(server, name)
        deletions = [
            PlannedChange(name, {"resource_class": name}, partial(_delete, server, name))
            for name in names
        ]
        make_changes("deleted", deletions, output, dry_run=dry_run)


def _delete(server: Administration, name: str) -> None:
    try:
        server.delete_resource_class(name)
    except NameInUse as error:
        raise NameInUse(
            with_next(
                f"{name} cannot be deleted: providers have inventory of it.",
                f"roost class show {name}",
            )
        ) from error


def _demand_unused(server: Administration, name: str) -> None:
    offering = _offering(server, name, Facet.INVENTORIES)
    if offering:
        raise NameInUse(
            with_next(
                f"{name} cannot be deleted: {len(offering)} providers have inventory of it.",
                f"roost class show {name}",
            )
        )


def _offering(server: Administration, name: str, *facets: Facet) -> list[CloudProvider]:
    """The providers with inventory of a class."""
    with progress_bar("asking providers", transient=True) as advance:
        found = CloudReader(server).providers(EVERYTHING, facets, advance)
        return [provider for provider in found if name in provider.inventories]
