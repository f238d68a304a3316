"""The commands `roost claim`, `roost move` and `roost release`: what consumers hold."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import click

from roost.cli.ask.asking import with_suggestion
from roost.cli.ask.candidates import ORDERS
from roost.cli.ask.options import RequestCommand, claim_options, placed_request, unexposed_option
from roost.cli.ask.words import TypedRequest
from roost.cli.cloud.consumer import consumer_uuid, holder_json
from roost.cli.shared.command import behind_own, command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.connection import server_options
from roost.cli.shared.exit_status import AnsweredNo
from roost.cli.shared.output import (
    OutputForm,
    PlannedChange,
    dry_run_option,
    make_changes,
    output_options,
    print_changes,
    telling_failure,
)
from roost.cli.shared.parameters import WORD, adding
from roost.cli.shared.terminal import echo_line
from roost.client.errors import (
    AlreadyAllocated,
    ClaimRefused,
    NoSuchConsumer,
    NothingFits,
    PlacementError,
    QuestionRefused,
)
from roost.client.ledger.query import QueryPairs, query_string
from roost.client.ledger.roost import Roost
from roost.client.ledger.values import Claimed
from roost.client.placement.placement import Administration
from roost.client.questions import Questions
from roost.client.reading.consumers import Holder
from roost.client.reading.lookup import demand_classes, with_uuids
from roost.model.identifiers import new_uuid
from roost.model.text import done_or_planned, own_lines, with_next, with_separators

_CONFLICT = 409
_MISSES_MAX = 3

_ORDER_OPTIONS = adding(
    click.option(
        "--order",
        type=click.Choice(ORDERS),
        help="Which candidate is taken first. Roost only. [default: as the server is configured]",
    ),
    click.option(
        "--seed",
        metavar="NUMBER",
        type=click.IntRange(0, 2**32 - 1),
        help="Repeats a random order.",
    ),
)
_SHARED = (dry_run_option, output_options, server_options)


def _claiming_command(function: Any) -> click.Command:
    """Declare a command that writes what one consumer holds; its own options come first."""
    return command(cls=RequestCommand)(behind_own(function, *_SHARED))


@_claiming_command
@claim_options
@unexposed_option(
    "--on",
    None,
    "Claim from this provider the resources behind it, without a search. May be repeated.",
    type=PROVIDER,
)
@click.option("--consumer", type=WORD, metavar="UUID", help="The consumer. [default: a new one]")
@click.option(
    "--project", type=WORD, metavar="ID", default="default", show_default=True, help="Its project."
)
@click.option(
    "--user", type=WORD, metavar="ID", default="default", show_default=True, help="Its user."
)
@click.option("--type", "kind", type=WORD, metavar="TYPE", help="Its type, such as INSTANCE.")
@_ORDER_OPTIONS
def claim(
    *,
    server: Questions,
    words: tuple[str, ...],
    from_query: str | None,
    consumer: str | None,
    project: str,
    user: str,
    kind: str | None,
    order: str | None,
    seed: int | None,
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Claim what a request asks for, or the resources of named providers.

    A request has the words of `roost candidates`. The command claims the first candidate. If
    another client takes that first, it claims the next one. A consumer that holds anything else
    claims nothing more: move it, or release it.

    \b
    Examples:
      roost claim VCPU=4 MEMORY_MB=8192 --require HW_CPU_X86_AVX2 --dry-run
      roost claim VCPU=4 --project shop --user ann --type INSTANCE --order pack
      roost claim --on compute-1 VCPU=4 MEMORY_MB=8192 --on pool-1 DISK_GB=100
      CONSUMER=$(roost claim VCPU=4 -o name)

    \b
    Exit status: 0 if it is claimed, 3 if that is refused, 1 after an error.
    """
    request, places = placed_request("--on", words, from_query)
    if (request is None) == (not places):
        raise click.UsageError("Give a request, such as VCPU=4, or providers: --on NAME VCPU=4.")
    _demand_amounts("--on", places)
    uuid = new_uuid() if consumer is None else consumer_uuid(consumer)
    if seed is not None:
        order = order or "random"
    roost = Roost(server.transport, project=project, user=user)
    told: dict[str, Any] = {"consumer": uuid, "type": kind, "dry_run": dry_run}
    pairs = _pairs(server, request)
    demand_classes(server, _classes(places))
    with _refusals(server, pairs), _telling(uuid, "claimed", dry_run=dry_run):
        made = (
            roost.claim_on(places, **told)
            if places
            else roost.claim(query_string(pairs), order=order, seed=seed, **told)
        )
    names = _names(server, made.consumer.holds)
    # A dry run makes no consumer, so a new one has no uuid yet.
    name = "a new consumer" if dry_run and consumer is None else uuid
    line = f"{name}: {done_or_planned('claimed', planned=dry_run)}: {_text(made.consumer, names)}"
    _print(made, names, line, output, dry_run=dry_run)


@_claiming_command
@click.argument("consumer", type=WORD, metavar="CONSUMER")
@claim_options
@unexposed_option(
    "--to",
    None,
    "Move to the tree of this provider; with resources behind it, to these of the provider itself, "
    "and may be repeated.",
    type=PROVIDER,
)
@click.option(
    "--off",
    type=PROVIDER,
    multiple=True,
    help="Provider whose tree must not be used. May be repeated. [default: the trees that the "
    "consumer uses, except those that share]",
)
@_ORDER_OPTIONS
def move(
    *,
    server: Questions,
    consumer: str,
    words: tuple[str, ...],
    from_query: str | None,
    off: tuple[str, ...],
    order: str | None,
    seed: int | None,
    output: OutputForm,
    dry_run: bool,
) -> None:
    """Replace all that a consumer holds by resources of other providers, in one write.

    Without a request, the consumer keeps its amounts. Placement does not know the traits that a
    claim asked for, so give a request if these matter. The command does not tell Nova or another
    scheduler, and moves no workload.

    \b
    Examples:
      roost move 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --dry-run
      roost move 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --to compute-2
      roost move 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 VCPU=8 --require CUSTOM_GOLD --off compute-1
      roost move 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --to compute-2 VCPU=4 --to pool-1 DISK_GB=9

    \b
    Exit status: 0 if it is moved, 3 if that is refused, 1 after an error.
    """
    request, places = placed_request("--to", words, from_query)
    onto = next(iter(places)) if len(places) == 1 and not any(places.values()) else None
    if places and onto is None:
        _demand_amounts("--to", places)
        if request is not None or off:
            raise click.UsageError("--to with resources says it all: leave out request and --off.")
    uuid = consumer_uuid(consumer)
    if seed is not None:
        order = order or "random"
    roost = Roost(server.transport)
    held = _held(roost, uuid, "move")
    pairs = _pairs(server, request)
    demand_classes(server, _classes(places))
    with _refusals(server, pairs), _telling(uuid, "moved", dry_run=dry_run):
        if places and onto is None:
            made = roost.move_to(uuid, places, dry_run=dry_run)
        else:
            made = roost.move(
                uuid,
                query_string(pairs) if pairs else None,
                off=off or None,
                onto=onto,
                order=order,
                seed=seed,
                dry_run=dry_run,
            )
    names = _names(server, [*held.holds, *made.consumer.holds])
    moved = f"{_text(held, names)} -> {_text(made.consumer, names)}"
    line = f"{uuid}: {done_or_planned('moved', planned=dry_run)}: {moved}"
    _print(made, names, line, output, dry_run=dry_run, was=holder_json(held, names)["allocations"])


@command()
@click.argument("consumers", type=WORD, metavar="CONSUMER...", nargs=-1, required=True)
@adding(*_SHARED)
def release(
    *, server: Administration, consumers: tuple[str, ...], output: OutputForm, dry_run: bool
) -> None:
    """Let consumers hold nothing; they are named by uuid.

    The command first looks at all of them: if one holds nothing, it releases none. It does not tell
    Nova or another scheduler, which may still count on what is released.

    \b
    Examples:
      roost release 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11 --dry-run
      roost release 2e1b1e4a-5f0c-4c8e-9a53-0a4c5f6f4c11
    """
    roost = Roost(server.transport)
    held = [_held(roost, uuid, "release") for uuid in dict.fromkeys(consumers)]
    planned = [
        PlannedChange(
            one.uuid,
            {"consumer": one.uuid, "resources": dict(one.amounts)},
            partial(roost.release, one.uuid),
            _amounts(one.amounts),
        )
        for one in held
    ]
    make_changes("released", planned, output, dry_run=dry_run)


def _held(roost: Roost, uuid: str, verb: str) -> Holder:
    found = roost.consumer(uuid)
    if found is None:
        raise NoSuchConsumer(
            with_next(
                f"Consumer {uuid} holds nothing, so there is nothing to {verb}.",
                "roost consumer list",
            )
        )
    return found


def _demand_amounts(option: str, places: Mapping[str, Mapping[str, int]]) -> None:
    for name, amounts in places.items():
        if not amounts:
            raise click.UsageError(f"{option} {name} needs resources behind it, such as VCPU=4.")


def _pairs(server: Administration, request: TypedRequest | None) -> QueryPairs:
    """The query of a request, with uuids for names; notes about it go to standard error."""
    if request is None:
        return ()
    for note in request.notes:
        echo_line(note, err=True)
    return with_uuids(server, request.pairs)


def _classes(places: Mapping[str, Mapping[str, int]]) -> set[str]:
    return {name for amounts in places.values() for name in amounts}


@contextmanager
def _refusals(server: Questions, pairs: QueryPairs) -> Iterator[None]:
    """Turn the refusal of a claim into the answer no, with the reason; name misspelt words."""
    following = f"roost explain --from-query {shlex.quote(query_string(pairs))}"
    try:
        yield
    except NothingFits as error:
        next_command = following if pairs else "roost usage"
        raise AnsweredNo(with_next(_explained(error), next_command)) from error
    except AlreadyAllocated as error:
        raise AnsweredNo(with_next(str(error), "roost move --help")) from error
    except ClaimRefused as error:
        if error.status not in (None, _CONFLICT):
            raise
        provider = error.provider_uuid
        shown = f"roost provider show {provider}" if provider else "roost provider list"
        raise AnsweredNo(with_next(str(error), shown)) from error
    except QuestionRefused as error:
        raise with_suggestion(server, pairs, error) from None


def _explained(error: NothingFits) -> str:
    """Why nothing fits, and what the nearest trees lack."""
    misses = error.why.misses[:_MISSES_MAX] if error.why is not None else ()
    lines = (f"{miss.root.name}: {' '.join(lack.text for lack in miss.lacks)}" for miss in misses)
    return own_lines(str(error), *lines)


def _telling(consumer: str, word: str, *, dry_run: bool) -> Any:
    return nullcontext() if dry_run else telling_failure(consumer, word)


def _names(server: Administration, uuids: Iterable[str]) -> dict[str, str]:
    """The names of providers, as far as they can be read: the claim is made already."""
    names = {}
    for uuid in dict.fromkeys(uuids):
        try:
            body = server.provider(uuid)
        except PlacementError:
            body = None
        if body is not None:
            names[uuid] = str(body["name"])
    return names


def _text(holder: Holder, names: Mapping[str, str]) -> str:
    """What a consumer holds, in a phrase."""
    return "; ".join(
        f"{_amounts(amounts)} of {names.get(uuid, uuid)}" for uuid, amounts in holder.holds.items()
    )


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={with_separators(amounts[name])}" for name in sorted(amounts))


def _print(
    made: Claimed,
    names: Mapping[str, str],
    line: str,
    output: OutputForm,
    *,
    dry_run: bool,
    was: object = None,
) -> None:
    value = holder_json(made.consumer, names) | {
        "groups": {name: list(uuids) for name, uuids in made.groups.items()},
        "repeated": made.repeated,
        "overtaken": made.overtaken,
    }
    if was is not None:
        value["was"] = was
    lines: Sequence[str] = [line]
    if made.repeated:
        lines = []
        echo_line(f"{made.consumer.uuid} holds exactly this already.", err=True)
    print_changes(lines, [value], output, dry_run=dry_run, names=[made.consumer.uuid])
