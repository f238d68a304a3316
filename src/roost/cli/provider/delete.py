"""The command `roost provider delete`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

import click

from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import OutputForm, PlannedChange, dry_run_option, make_changes, output_options
from roost.cli.parameters import WORD
from roost.client.errors import ResourceProviderInUse
from roost.client.lookup import find_provider, provider_argument, subtree_of
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.model.text import counted, printable, with_next

_CONSUMERS_NAMED = 3


@click.command(
    short_help="Delete providers that are not in use.",
    epilog="""\b
Examples:
  roost provider delete compute-1 --dry-run
  roost provider delete compute-1 --with-children
""",
)
@click.argument(
    "names",
    type=WORD,
    metavar="NAME_OR_UUID...",
    nargs=-1,
    required=True,
    shell_complete=complete_providers,
)
@click.option("--with-children", is_flag=True, help="Delete all providers below them as well.")
@dry_run_option
@output_options
@connection_options
def delete(
    *,
    connection: ConnectionSettings,
    names: tuple[str, ...],
    with_children: bool,
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Delete providers, the lowest ones first.

    The command first looks at all of them: if one is in use, it deletes none, and says what holds
    it.
    """
    with connection.open() as transport:
        server = Administration(transport)
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
