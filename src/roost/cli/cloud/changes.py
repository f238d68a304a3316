"""The command `roost changes`: what was written to a server, and by which request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import click

from roost.cli.shared.command import behind_own, command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.output import (
    FormName,
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.shared.parameters import WORD, adding
from roost.cli.shared.terminal import Interrupted, echo_line
from roost.cli.shared.watching import print_one, repeat
from roost.client.errors import CursorExpired, PlacementError
from roost.client.questions import Json, Questions, ask_changes, next_changes
from roost.model.text import counted, printable, with_next

_SHOWN = 1000
_PAGE_LIMIT = 1000
_COLUMNS = columns_of("AT, KIND, PROVIDER, CLASSES, ROOT?, REQUEST?, USER?, PROJECT?")
_KINDS = (
    "usage",
    "inventory",
    "traits",
    "aggregates",
    "provider_created",
    "provider_renamed",
    "provider_moved",
    "provider_deleted",
    "provider_adopted",
    "provider",
    "resource_classes",
    "trait_names",
)
# A server answers a client that waits before the client gives up.
_WAIT_SECONDS = 20
# A server that cannot wait answers at once.
_PAUSE_SECONDS = 0.5


@dataclass
class _Reading:
    """How far the command has read, and which changes it asks for."""

    server: Questions
    cursor: str | None
    conditions: Json
    # When the newest change was written that the command has told.
    told_at: str | None = None

    def page(self, length: int, wait: int | None = None) -> Json:
        """The next page."""
        try:
            question = ask_changes(self.cursor, wait, page_limit=length, **self.conditions)
            page = next_changes(self.server, question, self.cursor)
        except CursorExpired as error:
            raise self._expired(error) from None
        self.cursor = page["next"]
        if page["changes"]:
            self.told_at = page["changes"][-1]["at"]
        return page

    @property
    def next_command(self) -> str:
        """The command that goes on from here."""
        return f"roost changes --since {shlex.quote(printable(self.cursor or ''))}"

    def _expired(self, error: CursorExpired) -> PlacementError:
        """Say what is lost, and how to go on."""
        since = "the cursor" if self.told_at is None else f"{self.told_at}, the last one told here,"
        text = (
            f"The cursor has expired: {' '.join((error.detail or '').split())} Changes after "
            f"{since} are lost. What they led to is in `roost provider list` and `roost usage`; "
            "later changes follow from now on."
        )
        return CursorExpired(with_next(text, "roost changes --follow"))


def _run(
    *,
    connection: ConnectionSettings,
    output: OutputForm,
    since: str | None,
    follow: bool,
    provider: str | None,
    root: str | None,
    kinds: Sequence[str],
    limit: int | None,
) -> None:
    if follow and limit is not None:
        raise click.UsageError("--limit and --follow contradict each other.")
    if follow and output.sort:
        raise click.UsageError("--sort and --follow contradict each other.")
    conditions = {"provider": provider, "root": root, "kind": ",".join(kinds) or None}
    with connection.open() as transport:
        reading = _Reading(Questions(transport), since, conditions)
        if follow:
            _follow(reading, output, _wait_seconds(connection))
        _print_once(reading, output, _SHOWN if limit is None else limit)


def _wait_seconds(connection: ConnectionSettings) -> int:
    """For how long a server may hold a request; 0 if the client waits for its bytes too briefly."""
    if connection.timeout is None:
        return _WAIT_SECONDS
    return min(_WAIT_SECONDS, int(connection.timeout / 2))


def _print_once(reading: _Reading, form: OutputForm, limit: int) -> None:
    """Print what there is, up to so many changes and the end of their transaction."""
    begins_now = reading.cursor is None
    found: list[Json] = []
    more = True
    try:
        while more and (not limit or len(found) < limit):
            page = reading.page(min(limit - len(found), _PAGE_LIMIT) if limit else _PAGE_LIMIT)
            found += page["changes"]
            more = page["more"]
    finally:
        # What came before the server was lost, or had forgotten the rest, is told.
        if found or not more:
            print_output(_output(found, reading.cursor, more=more), form)
    begin = "Changes begin now." if begins_now else f"{counted(len(found), 'change')}."
    rest = "There are more: go on from the cursor, or give --limit 0." if more else ""
    echo_line(f"{begin} {rest}".rstrip(), err=True)
    echo_line(f"Next: {reading.next_command}", err=True)


def _follow(reading: _Reading, form: OutputForm, wait: int) -> NoReturn:
    """Print changes as they happen, until Ctrl-C. A lost server is asked again from the cursor."""

    def tell(page: Json) -> None:
        nonlocal form
        if page["changes"]:
            _print_page(_output(page["changes"], page["next"], more=page["more"]), form)
            # The titles stand above the first page only.
            form = replace(form, titles=False)

    def step() -> None:
        """Tell what comes next, and all that the server has by then."""
        more = True
        while more:
            page = reading.page(_PAGE_LIMIT, wait or None)
            tell(page)
            more = page["more"]

    try:
        # A server that does not answer at first may have another address.
        tell(reading.page(_PAGE_LIMIT))
        repeat(step, _PAUSE_SECONDS)
    except KeyboardInterrupt:
        text = "Interrupted."
        if reading.cursor is not None:
            text = with_next(text, f"{reading.next_command} --follow")
        raise Interrupted(text) from None


def _print_page(result: Output, form: OutputForm) -> None:
    """Print one page of many: a line of JSON, a document of YAML, or rows."""
    if form.name in (FormName.JSON, FormName.YAML):
        print_one(result, form)
    else:
        print_output(result, form)


def _output(changes: Sequence[Json], cursor: str | None, *, more: bool) -> Output:
    value: dict[str, Any] = {"changes": list(changes), "next": cursor, "more": more}
    named = [_name(change["provider"]) for change in changes]
    return Output(
        Table(_COLUMNS, list(map(_row, changes))),
        value,
        names=list(dict.fromkeys(name for name in named if name)),
    )


def _row(change: Json) -> list[object]:
    return [
        change["at"],
        change["kind"],
        _name(change["provider"]),
        change["resource_classes"],
        _name(change["root"]),
        change["request_id"],
        change["user_id"],
        change["project_id"],
    ]


def _name(provider: Json | None) -> str | None:
    if provider is None:
        return None
    name: str = provider["name"] or provider["uuid"]
    return name


_OPTIONS = (
    click.option(
        "--since",
        type=WORD,
        metavar="CURSOR",
        help="Begin after this cursor: that of an earlier call, or of an answer of the server. "
        "[default: now]",
    ),
    click.option("--follow", is_flag=True, help="Tell changes as they happen, until Ctrl-C."),
    click.option("--provider", type=PROVIDER, help="Only changes of this provider."),
    click.option("--root", type=PROVIDER, help="Only changes in the tree of this provider."),
    click.option(
        "--kind",
        "kinds",
        type=click.Choice(_KINDS),
        metavar="KIND",
        multiple=True,
        help=f"Only changes of this kind: {', '.join(_KINDS)}. May be repeated.",
    ),
    click.option(
        "--limit",
        metavar="NUMBER",
        type=click.IntRange(0),
        help=f"How many changes to tell; 0 for all. [default: {_SHOWN}]",
    ),
)
changes = command(
    text="""Tell what was written to a server, in the order of commits, and which request wrote it.

    Each call says from which cursor the next one goes on. With --follow, the command goes on by
    itself, also after a restart of the server, and prints one JSON document a line with --json.
    A server keeps changes for an hour: an older cursor has expired.

    Exit status: 0 told, 1 after an error or an expired cursor, 130 after Ctrl-C.

    \b
    Examples:
      roost changes --follow
      roost changes --follow --root compute-1 --kind usage
      roost changes --since eNoDAAAAAAE --json
    """
)(behind_own(adding(*_OPTIONS)(_run), output_options, connection_options))
