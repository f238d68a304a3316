"""The commands `roost provider adopt`, `rename` and `merge`: a host that was installed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import click

from roost.cli.shared.command import behind_own, command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.connection import server_options
from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.output import (
    OutputForm,
    dry_run_option,
    output_options,
    print_changes,
    telling_failure,
)
from roost.cli.shared.parameters import WORD
from roost.client.errors import ChangeFailed, NotOffered, QuestionRefused
from roost.client.placement import ProviderBody
from roost.client.provider_edit import IdentityChange
from roost.client.questions import (
    Json,
    Questions,
    ServerChange,
    adopt,
    merge,
    rename,
)
from roost.client.reading.lookup import find_provider, provider_argument
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import done_or_planned, with_next


def _change_command(name: str, summary: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command that changes one provider, with the options that all of them have."""

    def declare(function: Callable[..., None]) -> click.Command:
        shared = (dry_run_option, output_options, server_options)
        return command(name, summary)(behind_own(function, *shared))

    return declare


@_change_command("adopt", "Give a provider the new uuid of its host.")
@click.argument("provider", type=PROVIDER)
@click.option("--uuid", type=WORD, metavar="UUID", required=True, help="The new uuid.")
def adopt_provider(
    *, server: Questions, provider: str, uuid: str, output: OutputForm, dry_run: bool
) -> None:
    """Give a provider another uuid, for a host that was installed again.

    The provider keeps all that it has: children, inventories, traits, aggregates and allocations.
    If the host has registered as a second provider, merge the two.

    \b
    Examples:
      roost provider adopt compute-1 --uuid 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11 --dry-run
      roost provider adopt compute-1 --uuid 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11
    """
    if not is_uuid(uuid):
        raise WrongUsage(with_next(f"--uuid {uuid} is no uuid.", "roost provider adopt --help"))
    wanted, body = canonical_uuid(uuid), find_provider(server, provider)
    change = adopt(body["uuid"], wanted)
    following = f"roost provider merge {provider_argument(body)} --into {wanted} --dry-run"
    answer = _carried_out(server, body, change, "adopted", following, dry_run=dry_run)
    _print_identities([answer], "uuid", output, dry_run=dry_run)


@_change_command("rename", "Give a provider another name.")
@click.argument("provider", type=PROVIDER)
@click.argument("name", type=WORD)
@click.option(
    "--descendants",
    is_flag=True,
    help="Also rename the providers below it whose names begin with the old name.",
)
def rename_provider(
    *,
    server: Questions,
    provider: str,
    name: str,
    descendants: bool,
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Give a provider another name; with --descendants, all of them change at once, or none.

    \b
    Examples:
      roost provider rename compute-1 compute-1.example --dry-run
      roost provider rename compute-1 compute-7 --descendants
    """
    body = find_provider(server, provider)
    change = rename(body["uuid"], name, descendants=descendants)
    answer = _carried_out(server, body, change, "renamed", "roost provider list", dry_run=dry_run)
    _print_identities(answer["renamed"], "name", output, dry_run=dry_run)


@_change_command("merge", "Merge a provider into another one.")
@click.argument("provider", type=PROVIDER)
@click.option("--into", type=PROVIDER, required=True, help="The provider that takes over.")
@click.option("--force", is_flag=True, help="Merge even if consumers then hold too much.")
def merge_provider(
    *,
    server: Questions,
    provider: str,
    into: str,
    force: bool,
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Let another provider take over all that a provider has, and delete the provider.

    Allocations, traits, aggregates and children move, and the inventories of classes that the
    provider of --into lacks. It is one step: all of it happens, or nothing.

    \b
    Examples:
      roost provider merge compute-1 --into compute-1.example --dry-run
      roost provider merge compute-1 --into compute-1.example
    """
    body, target = find_provider(server, provider), find_provider(server, into)
    change = merge(body["uuid"], target["uuid"], force=force)
    following = f"roost provider show {provider_argument(target)}"
    answer = _carried_out(server, body, change, "merged", following, dry_run=dry_run)
    print_changes(list(_merged(answer, planned=dry_run)), [answer], output, dry_run=dry_run)


def _carried_out(
    server: Questions,
    body: ProviderBody,
    change: ServerChange,
    word: str,
    following: str,
    *,
    dry_run: bool,
) -> Json:
    """What the server changed, or would change; a refusal ends with the command that follows."""
    try:
        if dry_run:
            return server.answer(change.rehearsal)
        with telling_failure(body["name"], word):
            return server.make(change)
    except NotOffered as error:
        raise error.advising(f"roost provider show {provider_argument(body)}") from None
    except (ChangeFailed, QuestionRefused) as error:
        if error.status == 409:
            error.next_command = following
        raise


def _print_identities(
    changed: list[Any] | list[Json], field: str, output: OutputForm, *, dry_run: bool
) -> None:
    """Print the providers whose name or uuid is another one."""
    changes = [
        IdentityChange(one["provider"]["uuid"], one["was"]["name"], field, one["was"][field], after)
        for one in changed
        if (after := one["provider"][field]) != one["was"][field]
    ]
    lines = [line for change in changes for line in change.lines(planned=dry_run)]
    print_changes(lines, list(map(asdict, changes)), output, dry_run=dry_run)


def _merged(answer: Json, *, planned: bool) -> Iterator[str]:
    """A line for each kind of thing that moves, and one for the provider that goes."""
    verb = done_or_planned("taken over", planned=planned)
    for noun, moved in (
        ("consumers", [str(answer["consumers"])] if answer["consumers"] else []),
        ("inventories", answer["resource_classes"]),
        ("traits", answer["traits"]),
        ("aggregates", answer["aggregates"]),
        ("children", [child["name"] for child in answer["children"]]),
    ):
        if moved:
            yield f"{answer['provider']['name']}: {noun} {verb}: {', '.join(moved)}"
    yield f"{answer['merged']['name']}: {done_or_planned('deleted', planned=planned)}"
