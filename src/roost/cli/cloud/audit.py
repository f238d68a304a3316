"""The command `roost audit`: what is wrong with a cloud, and the requests that mend it."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

import click

from roost.cli.shared.command import command
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.exit_status import ExitStatus, yes_or_no
from roost.cli.shared.output import (
    Output,
    OutputForm,
    Table,
    columns_of,
    dry_run_option,
    output_options,
    telling_failure,
)
from roost.cli.shared.parameters import WORD, NumberRange
from roost.cli.shared.terminal import echo_line
from roost.cli.shared.watching import present
from roost.client import questions
from roost.client.compute.compute_service import ComputeService
from roost.client.errors import ChangeFailed, NotConfigured, NotOffered, QuestionRefused
from roost.client.questions import Json, Questions, ServerChange
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import counted, done_or_planned, with_next, with_separators

_COLUMNS = columns_of("KIND, WHAT, TEXT, MEND?")
_COLUMNS_OF_DELETION = columns_of("KIND, WHAT, DELETED, TEXT, MEND?")
_ORPHAN = "orphan"
_STANDARD_INPUT = "-"
_OPENSTACK = "openstack"
# Nova gives its consumers no type, unless a version of it does.
_TYPES_OF_NOVA = ("INSTANCE", "MIGRATION", "unknown")
# So many questions to Nova take some minutes.
_ORPHANS_ASKED_MAX = 1000
_SHOWN_MAX = 60


@command()
@click.option(
    "--against",
    type=WORD,
    metavar="FILE|openstack",
    help="The uuids of all consumers that exist, one on each line; `-` reads standard input, and "
    "`openstack` asks Nova. Others are orphans.",
)
@click.option(
    "--type",
    "types",
    type=WORD,
    metavar="TYPE",
    multiple=True,
    help="With --against: only consumers of this type can be orphans; `unknown` for those without "
    "a type. May be repeated. [default: all; with openstack, those that Nova makes]",
)
@click.option("--delete", is_flag=True, help="Delete the allocations of all orphans.")
@click.option(
    "--at-most-percent",
    type=NumberRange(0, 100),
    metavar="NUMBER",
    help="With --delete: delete nothing if more of all consumers are orphans. [default: 5]",
)
@dry_run_option
@output_options
@connection_options
def audit(
    *,
    connection: ConnectionSettings,
    output: OutputForm,
    against: str | None,
    types: tuple[str, ...],
    delete: bool,
    at_most_percent: float | None,
    dry_run: bool,
) -> None:
    """Look for orphans, inventories over their capacity, and other things that are wrong.

    A consumer that changed after the list began is no orphan. For a file, that is the time of its
    last change; for standard input, the start of this command. Give a file that took long to write
    the time when its listing began, with `touch -d`.

    With `openstack`, Nova lists the servers of all projects and the migrations under way, for an
    administrator of --os-cloud or of the OS_* variables. Nova is then asked about each orphan, so
    a server that the list lacks is none.

    Exit status: 0 nothing was wrong, 3 something was, also if it is deleted now, 1 after an error.

    \b
    Examples:
      roost audit
      roost audit --against openstack --os-cloud mycloud
      roost audit --against servers.txt --type INSTANCE --delete --dry-run
    """
    started = datetime.now(UTC)
    if against is None and (types or delete):
        raise click.UsageError("--type and --delete need --against.")
    if at_most_percent is not None and not delete:
        raise click.UsageError("--at-most-percent needs --delete.")
    known = None if against is None else _known(against, started, connection)
    if delete and known is not None and not known.uuids:
        raise NotConfigured(
            with_next(
                f"{against} has no uuid, so all consumers would be orphans. Did the program "
                "that writes it fail?",
                "roost audit",
            )
        )
    deletion: dict[str, Any] = {"delete": True} if delete else {}
    if at_most_percent is not None:
        deletion["at_most_percent"] = at_most_percent

    def answered() -> Output:
        with connection.open() as transport:
            server = Questions(transport)
            body = {} if known is None else _body(server, known, types)
            change = questions.audit(body | deletion)
            answer = _asked(server, change, deletes=delete and not dry_run)
        return _output(answer, delete=delete, dry_run=dry_run)

    present(answered, output, watch=None)


@dataclass(frozen=True, slots=True)
class _KnownConsumers:
    """The consumers that a program knows, and when it began to list them."""

    uuids: Sequence[str]
    known_at: datetime
    # Nova, which can be asked about each consumer.
    compute: ComputeService | None = None


def _known(against: str, started: datetime, connection: ConnectionSettings) -> _KnownConsumers:
    """The list of Nova, of a file or of standard input."""
    if against == _OPENSTACK:
        compute = ComputeService(connection.cloud_settings.find())
        return _KnownConsumers(list(dict.fromkeys(compute.consumers())), started, compute)
    uuids, begun = _listed(against, started)
    return _KnownConsumers(list(dict.fromkeys(uuids)), begun)


def _body(server: Questions, known: _KnownConsumers, types: Sequence[str]) -> dict[str, Any]:
    """The question for orphans. Those that Nova has nevertheless are known, too."""
    # Some databases keep whole seconds: a fraction would make a new consumer seem older.
    moment = known.known_at.replace(tzinfo=None).isoformat(timespec="seconds")
    body: dict[str, Any] = {"known_consumers": list(known.uuids), "known_at": f"{moment}Z"}
    if types or known.compute is not None:
        body["types"] = list(types) or list(_TYPES_OF_NOVA)
    if known.compute is not None:
        body["known_consumers"] += _servers_beside_the_list(server, known.compute, body)
    return body


def _servers_beside_the_list(
    server: Questions, compute: ComputeService, body: Json
) -> Iterator[str]:
    """Those orphans that Nova has: deleted softly, or in a cell that does not answer."""
    answer = _asked(server, questions.audit(body), deletes=False)
    orphans = [one["consumer"] for one in answer["findings"] if one["kind"] == _ORPHAN]
    if len(orphans) > _ORPHANS_ASKED_MAX:
        raise NotConfigured(
            with_next(
                f"Nova does not list {counted(len(orphans), 'consumer')} of "
                f"{with_separators(answer['consumers'])}. Is this the Nova of the same cloud?",
                "roost consumer list",
            )
        )
    return filter(compute.has_server, orphans)


def _listed(against: str, started: datetime) -> tuple[list[str], datetime]:
    """The uuids of a file or of standard input, and when the list was begun."""
    if against == _STANDARD_INPUT:
        if isinstance(sys.stdin, io.TextIOWrapper):
            # Bytes that are no text are no uuid, and their line is told.
            sys.stdin.reconfigure(errors="replace")
            started = _begun(sys.stdin, started)
        return list(_uuids(sys.stdin, "standard input")), started
    with open(against, encoding="utf-8", errors="replace") as file:
        return list(_uuids(file, against)), _begun(file, started)


def _begun(file: TextIO, started: datetime) -> datetime:
    """When a list was written; a pipe is written while this command reads it."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):
        # A test or a program may replace standard input by something without a file.
        return started
    if not stat.S_ISREG(found.st_mode):
        return started
    return min(started, datetime.fromtimestamp(found.st_mtime, UTC))


def _uuids(lines: Iterable[str], name: str) -> Iterator[str]:
    """The uuids of the lines.

    >>> list(_uuids(["# servers", "", " C0FFEE00000000000000000000000001 "], "x"))
    ['c0ffee00-0000-0000-0000-000000000001']
    """
    for number, line in enumerate(lines, 1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if not is_uuid(word):
            raise NotConfigured(
                with_next(
                    f"{name}, line {number}: {word[:_SHOWN_MAX]!r} is no uuid. Nothing was sent.",
                    "roost audit --help",
                )
            )
        yield canonical_uuid(word)


def _asked(server: Questions, change: ServerChange, *, deletes: bool) -> Json:
    """All pages of the answer; the request for the first one deletes."""
    try:
        if not deletes:
            return server.answer(change.rehearsal)
        with telling_failure("orphans", "deleted"):
            answer = server.make(change)
        # The operator learns of the deletion even if the next page cannot be read.
        found = counted(answer["counts"].get(_ORPHAN, 0), "orphan")
        told = answer.get("problem") or f"{found}: deleted, except those that changed meanwhile."
        echo_line(told, err=True)
        if marker := answer.get("next"):
            rest = server.answer(change.rest(marker, delete=False))["findings"]
            answer["findings"] += rest
            answer["next"] = None
        return answer
    except NotOffered as error:
        raise error.advising("roost doctor") from None
    except (ChangeFailed, QuestionRefused) as error:
        if error.status == 409:
            error.next_command = "roost audit --help"
        raise


def _output(answer: Json, *, delete: bool, dry_run: bool) -> Output:
    findings = answer["findings"]
    word = done_or_planned("deleted", planned=dry_run)
    rows = []
    for finding in findings:
        provider = finding["provider"]
        row = [finding["kind"], provider["name"] if provider else finding["consumer"]]
        if delete:
            row.append(word if finding["deleted"] else None)
        rows.append([*row, finding["text"], _request(finding["mend"])])
    table = Table(_COLUMNS_OF_DELETION if delete else _COLUMNS, rows)
    value = {
        "dry_run": dry_run,
        "findings": findings,
        "counts": answer["counts"],
        "consumers": answer["consumers"],
        "problem": answer.get("problem"),
    }
    total = sum(answer["counts"].values())
    notes = [f"{counted(total, 'finding')}, {counted(answer['consumers'], 'consumer')} looked at."]
    if len(findings) < total:
        notes.append(
            f"{counted(total - len(findings), 'finding')} more: they are deleted, or have changed."
        )
    status = ExitStatus.FAILED if value["problem"] else yes_or_no(not total)
    names = table.chosen(["what"]).names()
    return Output(table, value, notes=notes, status=status, names=names)


def _request(mend: Json | None) -> str | None:
    """A request in one line.

    >>> _request({"method": "DELETE", "path": "/allocations/u", "body": None})
    'DELETE /allocations/u'
    """
    if mend is None:
        return None
    body = mend.get("body")
    return f"{mend['method']} {mend['path']}" + ("" if body is None else f" {json.dumps(body)}")
