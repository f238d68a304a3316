"""The commands `roost provider create`, `set` and `delete`."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from roost.cli.cloud.aggregate import aggregate_uuid
from roost.cli.shared.command import command
from roost.cli.shared.completers import PROVIDER, RESOURCE_CLASS, TRAIT
from roost.cli.shared.connection import server_options
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.output import (
    OutputForm,
    PlannedChange,
    dry_run_option,
    make_changes,
    output_options,
    print_changes,
)
from roost.cli.shared.parameters import WORD, CommandDecorator
from roost.cli.shared.terminal import echo_line
from roost.client.errors import ProviderExists, ResourceProviderInUse
from roost.client.ledger.roost import Roost
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.client.provider_edit import (
    EditChange,
    FieldAssignment,
    ProviderEdit,
    carry_out,
    edit_absences,
    edit_changes,
    edit_warnings,
    read_edited,
)
from roost.client.reading.lookup import (
    demand_classes,
    demand_traits,
    find_provider,
    provider_argument,
    subtree_of,
)
from roost.model.identifiers import canonical_uuid, is_uuid, new_uuid
from roost.model.inventory import DEFAULTS, INTEGER_MAX
from roost.model.text import counted, printable, with_next
from roost.model.trees.difference import ProviderChange

_CONSUMERS_NAMED = 3
_FIELDS = ("total", *DEFAULTS)
# The largest ratio that a server takes.
_RATIO_MAX = 3.40282e38
_ASSIGNMENT = re.compile(r"(?P<name>[A-Z0-9_]+)(?::(?P<field>\w+))?=(?P<value>[^=]*)")


class _Assignment(click.ParamType[FieldAssignment]):
    """CLASS=TOTAL or CLASS:FIELD=VALUE."""

    name = "assignment"
    shell_complete = RESOURCE_CLASS.shell_complete

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> FieldAssignment:
        if isinstance(value, FieldAssignment):
            return value
        found = _ASSIGNMENT.fullmatch(value)
        if found is None:
            self.fail(f"{value!r}: write VCPU=16, or VCPU:reserved=2.", param, ctx)
        field = found["field"] or "total"
        if field not in _FIELDS:
            self.fail(f"{value!r}: the fields are {', '.join(_FIELDS)}.", param, ctx)
        amount = _amount(field, found["value"])
        if amount is None:
            is_ratio = field == "allocation_ratio"
            form = "number, such as 1.5" if is_ratio else f"whole number up to {INTEGER_MAX}"
            self.fail(f"{value!r}: {field} is a {form}, and never negative.", param, ctx)
        return FieldAssignment(found["name"], field, amount)


def _amount(field: str, text: str) -> int | float | None:
    """The value that a text gives a field; `None` if no server could store it.

    >>> _amount("total", "8"), _amount("total", "-8"), _amount("allocation_ratio", "nan")
    (8, None, None)
    """
    kind, largest = (float, _RATIO_MAX) if field == "allocation_ratio" else (int, INTEGER_MAX)
    try:
        amount = kind(text)
    except ValueError:
        return None
    return amount if 0 <= amount <= largest else None


def _several(
    option: str, kind: click.ParamType[Any], text: str, metavar: str | None = None
) -> CommandDecorator:
    help_text = f"{text} May be repeated."
    return click.option(option, type=kind, metavar=metavar, multiple=True, help=help_text)


@command("create", "Create a provider.")
@click.argument("name", type=WORD, metavar="NAME")
@click.option("--parent", type=PROVIDER, help="Put the provider below this one.")
@click.option("--uuid", type=WORD, metavar="UUID", help="Give the provider this uuid.")
@_several(
    "--inventory",
    _Assignment(),
    f"Set the total of an inventory, or a field: {', '.join(DEFAULTS)}.",
    "CLASS[:FIELD]=VALUE",
)
@_several("--trait", TRAIT, "Give the provider a trait.")
@_several("--aggregate", WORD, "Put the provider into an aggregate.", "UUID")
@dry_run_option
@output_options
@server_options
def create_provider(
    *, server: Administration, name: str, output: OutputForm, dry_run: bool, **options: Any
) -> None:
    """Create a provider with its inventories, traits and aggregates.

    The command first looks at all names: if the server does not know one, nothing is created.

    \b
    Examples:
      roost provider create compute-9 --inventory VCPU=64 --inventory VCPU:allocation_ratio=4
      roost provider create compute-9_gpu0 --parent compute-9 --inventory VGPU=8 --dry-run
      roost provider create pool-2 --inventory DISK_GB=9000 --trait MISC_SHARES_VIA_AGGREGATE
    """
    uuid = new_uuid() if options["uuid"] is None else _uuid(options["uuid"])
    inventories = _new_inventories(name, options["inventory"])
    demand_classes(server, inventories.keys())
    demand_traits(server, options["trait"])
    parent = find_provider(server, options["parent"])["uuid"] if options["parent"] else None
    aggregates = list(map(aggregate_uuid, options["aggregate"]))
    _demand_free(server, name, uuid)
    make = partial(
        Roost(server.transport).create_provider,
        name,
        parent=parent,
        uuid=uuid,
        inventories=inventories,
        traits=options["trait"],
        aggregates=aggregates,
    )
    value = {"uuid": uuid, "name": name, "parent": parent}
    make_changes("created", [PlannedChange(name, value, make)], output, dry_run=dry_run)


def _new_inventories(
    name: str, assignments: Sequence[FieldAssignment]
) -> dict[str, dict[str, int | float]]:
    found: dict[str, dict[str, int | float]] = {}
    for one in assignments:
        found.setdefault(one.resource_class, {})[one.field] = one.value
    for resource_class, fields in found.items():
        if "total" not in fields:
            raise WrongUsage(
                with_next(
                    f"The inventory of {resource_class} has no total.",
                    f"roost provider create {shlex.quote(name)} --inventory {resource_class}=TOTAL",
                )
            )
    return found


def _uuid(text: str) -> str:
    if not is_uuid(text):
        raise WrongUsage(with_next(f"{text} is no uuid. Without --uuid, one is made.", "uuidgen"))
    return canonical_uuid(text)


def _demand_free(server: Administration, name: str, uuid: str) -> None:
    """Raise an error if a provider has this name or uuid; a dry run would not meet it."""
    found = [body for body in server.providers_named(name) if body["name"] == name]
    taken = found[0] if found else server.provider(uuid)
    if taken is not None:
        raise ProviderExists(
            with_next(
                f"A provider has this {'name' if found else 'uuid'} already: "
                f"{printable(taken['name'])} ({taken['uuid']}).",
                f"roost provider show {provider_argument(taken)}",
            )
        )


@command("set", "Change a provider: inventories, traits, place.")
@click.argument("provider", type=PROVIDER)
@_several(
    "--inventory",
    _Assignment(),
    f"Set the total of an inventory, or a field: {', '.join(DEFAULTS)}. Further fields stay.",
    "CLASS[:FIELD]=VALUE",
)
@_several("--remove-inventory", RESOURCE_CLASS, "Remove an inventory.")
@_several("--add-trait", TRAIT, "Add a trait.")
@_several("--remove-trait", TRAIT, "Remove a trait.")
@_several("--add-aggregate", WORD, "Add the provider to an aggregate.", "UUID")
@_several("--remove-aggregate", WORD, "Remove the provider from an aggregate.", "UUID")
@click.option("--rename", type=WORD, metavar="NAME", help="Give the provider this name.")
@click.option(
    "--parent",
    type=PROVIDER,
    help="Move the provider, with all below it, below this one.",
)
@click.option("--no-parent", is_flag=True, help="Make the provider the root of its own tree.")
@dry_run_option
@output_options
@server_options
def set_provider(
    *, server: Administration, provider: str, output: OutputForm, dry_run: bool, **options: Any
) -> None:
    """Change what is named, and keep everything else as it is.

    If another client changes the provider at the same time, the command works its changes out
    again. It prints each change. To remove what the provider does not have is no error: a warning
    says so, and the exit status is 0, so that a script may run twice.

    \b
    Examples:
      roost provider set compute-1 --inventory VCPU=64 --inventory VCPU:allocation_ratio=4 --dry-run
      roost provider set compute-1 --inventory MEMORY_MB:reserved=2048
      roost provider set compute-1 --add-trait CUSTOM_GOLD --remove-trait CUSTOM_SILVER
      roost provider set pool-1 --add-aggregate 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11
      roost provider set numa0 --rename compute-1_numa0 --parent compute-1
    """
    if not any(options.values()):
        raise WrongUsage(with_next("Nothing to change is named.", "roost provider set --help"))
    if options["parent"] and options["no_parent"]:
        raise click.UsageError("--parent and --no-parent contradict each other.")
    body = find_provider(server, provider)
    edit = _edit(server, options)
    before = read_edited(server, body)
    changes = edit_changes(before, edit)
    for warning in (*edit_absences(before, edit), *edit_warnings(before, changes)):
        echo_line(f"roost: warning: {warning}", err=True)
    if changes and not dry_run:
        changes = _made(server, body, edit, output)
    _print(changes, output, dry_run=dry_run)


def _made(
    server: Administration, body: ProviderBody, edit: ProviderEdit, output: OutputForm
) -> list[EditChange]:
    """Carry the edit out; what was made before an error or Ctrl-C is printed."""
    changes: list[EditChange] = []
    try:
        carry_out(server, body, edit, changes)
    except BaseException:
        if changes:
            _print(changes, output, dry_run=False)
        raise
    return changes


def _print(changes: list[EditChange], output: OutputForm, *, dry_run: bool) -> None:
    lines = [line for change in changes for line in change.lines(planned=dry_run)]
    print_changes(lines, list(map(_as_json, changes)), output, dry_run=dry_run)


def _edit(server: Administration, options: dict[str, Any]) -> ProviderEdit:
    """The edit, after a check of the names in it: a server refuses the first unknown one only."""
    assignments: tuple[FieldAssignment, ...] = options["inventory"]
    demand_classes(server, {assignment.resource_class for assignment in assignments})
    demand_traits(server, options["add_trait"])
    return ProviderEdit(
        assignments=assignments,
        removed_inventories=frozenset(options["remove_inventory"]),
        added_traits=frozenset(options["add_trait"]),
        removed_traits=frozenset(options["remove_trait"]),
        added_aggregates=frozenset(map(aggregate_uuid, options["add_aggregate"])),
        removed_aggregates=frozenset(map(aggregate_uuid, options["remove_aggregate"])),
        name=options["rename"],
        parent=find_provider(server, options["parent"]) if options["parent"] else None,
        becomes_root=options["no_parent"],
    )


def _as_json(change: EditChange) -> dict[str, Any]:
    if not isinstance(change, ProviderChange):
        return asdict(change)
    return {
        "uuid": change.uuid,
        "name": change.name,
        "field": change.kind.value,
        "before": _plain(change.before),
        "after": _plain(change.after),
    }


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


@command("delete", "Delete providers that are not in use.")
@click.argument("names", type=PROVIDER, nargs=-1, required=True)
@click.option("--with-children", is_flag=True, help="Delete all providers below them as well.")
@dry_run_option
@output_options
@server_options
def delete(
    *,
    server: Administration,
    names: tuple[str, ...],
    with_children: bool,
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Delete providers, the lowest ones first.

    The command first looks at all of them: if one is in use, it deletes none, and says what holds
    it.

    \b
    Examples:
      roost provider delete compute-1 --dry-run
      roost provider delete compute-1 --with-children
    """
    chosen = {body["uuid"]: body for body in (find_provider(server, name) for name in names)}
    lowest_first = _lowest_first(server, list(chosen.values()))
    if not with_children:
        _demand_no_children(lowest_first, chosen.keys())
    for body in lowest_first:
        _demand_unused(server, body)
    deletions = [
        PlannedChange(
            body["name"],
            {"uuid": body["uuid"], "name": body["name"]},
            partial(server.delete_provider, body["uuid"]),
        )
        for body in lowest_first
    ]
    make_changes("deleted", deletions, output, dry_run=dry_run)


def _lowest_first(server: Administration, tops: Sequence[ProviderBody]) -> list[ProviderBody]:
    """These providers and all below them, so that a child stands before its parent."""
    found: dict[str, ProviderBody] = {}
    for top in tops:
        for body in subtree_of(server, top):
            # A provider that stands below an earlier one moves behind its parent.
            found.pop(body["uuid"], None)
            found[body["uuid"]] = body
    return list(reversed(found.values()))


def _demand_no_children(bodies: Sequence[ProviderBody], chosen: Collection[str]) -> None:
    extra = [body for body in bodies if body["uuid"] not in chosen]
    if not extra:
        return
    parents = {body["parent_provider_uuid"] for body in extra}
    top = next(
        body for body in reversed(bodies) if body["uuid"] in parents and body["uuid"] in chosen
    )
    names = ", ".join(sorted(printable(body["name"]) for body in extra)[:10])
    raise ResourceProviderInUse(
        with_next(
            f"{printable(top['name'])} has {counted(len(extra), 'provider')} below it ({names}), "
            "and is not deleted alone.",
            f"roost provider delete {provider_argument(top)} --with-children --dry-run",
        )
    )


def _demand_unused(server: Administration, body: ProviderBody) -> None:
    held = server.allocations(body["uuid"])
    if not held:
        return
    amounts: Counter[str] = Counter()
    for resources in held.values():
        amounts.update(resources)
    noun = "consumer holds" if len(held) == 1 else "consumers hold"
    listed = ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items()))
    some = ", ".join(sorted(held)[:_CONSUMERS_NAMED])
    more = f" and {len(held) - _CONSUMERS_NAMED} more" if len(held) > _CONSUMERS_NAMED else ""
    raise ResourceProviderInUse(
        with_next(
            f"{printable(body['name'])} cannot be deleted: {len(held)} {noun} {listed} of it "
            f"({some}{more}).",
            f"roost consumer list --provider {provider_argument(body)}",
        )
    )
