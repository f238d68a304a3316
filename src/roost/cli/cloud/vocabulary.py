"""The commands `roost trait` and `roost class`: the names that a server knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import click

from roost.cli.shared.bars import progress_bar
from roost.cli.shared.command import command, server_command
from roost.cli.shared.completers import RESOURCE_CLASS, TRAIT, CompletedWord
from roost.cli.shared.connection import server_options
from roost.cli.shared.group import CommandGroup
from roost.cli.shared.output import (
    Output,
    OutputForm,
    PlannedChange,
    Table,
    columns_of,
    dry_run_option,
    make_changes,
    output_options,
)
from roost.cli.shared.parameters import WORD
from roost.client.errors import NameInUse
from roost.client.placement.placement import Administration
from roost.client.reading.cloud_provider import CloudProvider
from roost.client.reading.cloud_reader import EVERYTHING, CloudReader, Facet
from roost.client.reading.lookup import (
    demand_classes,
    demand_custom_names,
    demand_known,
    demand_traits,
    provider_argument,
)
from roost.model.identifiers import is_custom
from roost.model.text import counted, matches, printable, with_next

_TRAITS = columns_of("TRAIT, CUSTOM, IN USE")
_CLASSES = columns_of("RESOURCE CLASS, CUSTOM")
_WITH_TRAIT = columns_of("PROVIDER, UUID")
_WITH_CLASS = columns_of("PROVIDER, >USED, >CAPACITY, UUID")
_NAMED_MAX = 5


@click.group(cls=CommandGroup)
def trait() -> None:
    """List, show, create and delete traits.

    \b
    Examples:
      roost trait list --custom
      roost trait show HW_CPU_X86_AVX2
      roost trait create CUSTOM_GOLD
    """


@click.group("class", cls=CommandGroup)
def resource_class() -> None:
    """List, show, create and delete resource classes.

    \b
    Examples:
      roost class list --custom
      roost class show VGPU
      roost class create CUSTOM_FPGA_LUT
    """


def _pattern(word: CompletedWord) -> Callable[..., Any]:
    return click.argument("pattern", type=word, metavar="[PATTERN]", required=False)


def _chosen(names: Iterable[str], pattern: str | None, *, custom: bool) -> list[str]:
    return [
        name
        for name in sorted(names)
        if (not custom or is_custom(name)) and (pattern is None or matches(name, pattern))
    ]


@server_command("list", "List traits.", of=trait)
@_pattern(TRAIT)
@click.option("--custom", is_flag=True, help="Only custom traits.")
@click.option("--in-use", is_flag=True, help="Only traits that some provider has.")
@click.option("--unused", is_flag=True, help="Only traits that no provider has.")
def list_traits(
    *, server: Administration, pattern: str | None, custom: bool, in_use: bool, unused: bool
) -> Output:
    """List the traits that the server knows; in a pattern, * and ? stand for any characters.

    \b
    Examples:
      roost trait list --custom
      roost trait list 'HW_CPU_X86_*' --in-use
      roost trait list --unused --custom --output csv
    """
    if in_use and unused:
        raise click.UsageError("--in-use and --unused contradict each other.")
    associated = server.trait_names(associated=True)
    names = associated if in_use else server.trait_names() - (associated if unused else set())
    chosen = _chosen(names, pattern, custom=custom)
    return Output.of(
        Table(_TRAITS, [[name, is_custom(name), name in associated] for name in chosen])
    )


@server_command("list", "List resource classes.", of=resource_class)
@_pattern(RESOURCE_CLASS)
@click.option("--custom", is_flag=True, help="Only custom classes.")
def list_classes(*, server: Administration, pattern: str | None, custom: bool) -> Output:
    """List the classes that the server knows; in a pattern, * and ? stand for any characters.

    \b
    Examples:
      roost class list
      roost class list 'CUSTOM_*' --json
    """
    chosen = _chosen(server.known_resource_classes(), pattern, custom=custom)
    return Output.of(Table(_CLASSES, [[name, is_custom(name)] for name in chosen]))


@server_command("show", "Show which providers have a trait.", of=trait)
@click.argument("name", type=TRAIT)
def show_trait(*, server: Administration, name: str) -> Output:
    """List the providers that have this trait.

    \b
    Examples:
      roost trait show HW_CPU_X86_AVX2
      roost trait show CUSTOM_GOLD --json
    """
    demand_traits(server, [name])
    found = sorted(server.matching_providers([("required", name)]), key=lambda body: body["name"])
    value = {
        "trait": name,
        "custom": is_custom(name),
        "providers": [{"uuid": body["uuid"], "name": body["name"]} for body in found],
    }
    table = Table(_WITH_TRAIT, [[body["name"], body["uuid"]] for body in found])
    return Output(table, value, notes=[] if found else ["No provider has this trait."])


@server_command("show", "Show which providers offer a class.", of=resource_class)
@click.argument("name", type=RESOURCE_CLASS)
def show_class(*, server: Administration, name: str) -> Output:
    """List the providers that have inventory of this class, with the used amounts.

    Placement finds only providers with room. So this command asks each provider for its
    inventories.

    \b
    Examples:
      roost class show VGPU
      roost class show CUSTOM_FPGA_LUT --output csv
    """
    demand_classes(server, [name])
    offering = sorted(
        _offering(server, name, Facet.INVENTORIES, Facet.USAGES),
        key=lambda provider: provider.name,
    )
    rows = [
        [one.name, one.used.get(name, 0), int(one.inventory(name).capacity), one.uuid]
        for one in offering
    ]
    value = {
        "resource_class": name,
        "custom": is_custom(name),
        "providers": [
            {"provider": {"uuid": uuid, "name": its_name}, "used": used, "capacity": capacity}
            for its_name, used, capacity, uuid in rows
        ],
    }
    notes = [] if rows else ["No provider has inventory of this class."]
    return Output(Table(_WITH_CLASS, rows), value, notes=notes)


def _offering(server: Administration, name: str, *facets: Facet) -> list[CloudProvider]:
    """The providers with inventory of a class."""
    with progress_bar("asking providers", transient=True) as advance:
        found = CloudReader(server).providers(EVERYTHING, facets, advance)
        return [provider for provider in found if name in provider.inventories]


def _demand_trait_unused(server: Administration, name: str, dry_run: bool) -> None:
    del dry_run
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


def _demand_class_unused(server: Administration, name: str, dry_run: bool) -> None:
    """Ask each provider, if this is a dry run: the server refuses a deletion by itself."""
    offering = _offering(server, name, Facet.INVENTORIES) if dry_run else ()
    if offering:
        raise _class_in_use(name, f"{len(offering)} providers")


def _delete_class(server: Administration, name: str) -> None:
    try:
        server.delete_resource_class(name)
    except NameInUse as error:
        raise _class_in_use(name, "providers") from error


def _class_in_use(name: str, providers: str) -> NameInUse:
    text = f"{name} cannot be deleted: {providers} have inventory of it."
    return NameInUse(with_next(text, f"roost class show {name}"))


class _Vocabulary(NamedTuple):
    """Names of one kind: what their creation and deletion need."""

    group: click.Group
    # In a sentence; and several of them.
    noun: str
    plural: str
    word: CompletedWord
    # Those of the given names that the server knows, and all that it knows.
    known: Callable[[Administration, Iterable[str]], set[str]]
    names: Callable[[Administration], set[str]]
    create: Callable[[Administration, str], None]
    delete: Callable[[Administration, str], None]
    # Raises an error if a provider has the name.
    demand_unused: Callable[[Administration, str, bool], None]

    def plan(
        self, names: Iterable[str], server: Administration, make: Callable[..., None]
    ) -> list[PlannedChange]:
        """The change of each name."""
        key = self.noun.replace(" ", "_")
        return [PlannedChange(name, {key: name}, partial(make, server, name)) for name in names]


def _help(kind: _Vocabulary, verb: str, sentence: str, examples: Iterable[str]) -> str:
    lines = "".join(f"\n  roost {kind.group.name} {verb} {example}" for example in examples)
    return f"{sentence}\n\n\b\nExamples:{lines}"


def _add_create(kind: _Vocabulary, *examples: str) -> None:
    sentence = f"Create custom {kind.plural}, unless the server knows them already."
    text = _help(kind, "create", sentence, examples)

    @command("create", f"Create custom {kind.plural}.", of=kind.group, text=text)
    @click.argument(
        "names", type=WORD, metavar=f"{kind.group.name}...".upper(), nargs=-1, required=True
    )
    @dry_run_option
    @output_options
    @server_options
    def create(
        *, server: Administration, names: tuple[str, ...], output: OutputForm, dry_run: bool
    ) -> None:
        demand_custom_names(names, kind.noun)
        known = kind.known(server, names)
        new = [name for name in dict.fromkeys(names) if name not in known]
        make_changes("created", kind.plan(new, server, kind.create), output, dry_run=dry_run)


def _add_delete(kind: _Vocabulary, sentence: str, *examples: str) -> None:
    text = _help(kind, "delete", sentence, examples)

    @command("delete", f"Delete custom {kind.plural}.", of=kind.group, text=text)
    @click.argument("names", type=kind.word, nargs=-1, required=True)
    @dry_run_option
    @output_options
    @server_options
    def delete(
        *, server: Administration, names: tuple[str, ...], output: OutputForm, dry_run: bool
    ) -> None:
        demand_custom_names(names, kind.noun)
        chosen = list(dict.fromkeys(names))
        known = kind.known(server, chosen)
        for name in chosen:
            if name not in known:
                listing = f"roost {kind.group.name} list --custom"
                demand_known(name, kind.names(server), kind.noun, listing)
        for name in chosen:
            kind.demand_unused(server, name, dry_run)
        make_changes("deleted", kind.plan(chosen, server, kind.delete), output, dry_run=dry_run)


_TRAIT_NAMES = _Vocabulary(
    trait,
    noun="trait",
    plural="traits",
    word=TRAIT,
    known=Administration.known_traits,
    names=Administration.trait_names,
    create=Administration.create_trait,
    delete=Administration.delete_trait,
    demand_unused=_demand_trait_unused,
)
_CLASS_NAMES = _Vocabulary(
    resource_class,
    noun="resource class",
    plural="classes",
    word=RESOURCE_CLASS,
    known=lambda server, _names: server.known_resource_classes(),
    names=Administration.known_resource_classes,
    create=Administration.create_resource_class,
    delete=_delete_class,
    demand_unused=_demand_class_unused,
)
_add_create(_TRAIT_NAMES, "CUSTOM_GOLD CUSTOM_SILVER", "CUSTOM_GOLD --dry-run")
_add_delete(
    _TRAIT_NAMES,
    "Delete custom traits that no provider has; if a provider has one, none is deleted.",
    *("CUSTOM_GOLD --dry-run", "CUSTOM_GOLD CUSTOM_SILVER"),
)
_add_create(_CLASS_NAMES, "CUSTOM_FPGA_LUT", "CUSTOM_FPGA_LUT --dry-run")
_add_delete(
    _CLASS_NAMES,
    "Delete custom classes of which no provider has inventory.\n\n"
    "The server alone knows that at once, so a dry run asks each provider.",
    *("CUSTOM_FPGA_LUT --dry-run", "CUSTOM_FPGA_LUT"),
)
