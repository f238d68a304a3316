"""The command `roost audit`: what is wrong with a cloud, and the requests that mend it."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TextIO

import click

from roost.cli.shared.command import server_command
from roost.cli.shared.exit_status import ExitStatus, yes_or_no
from roost.cli.shared.output import Output, Table, columns_of, dry_run_option, telling_failure
from roost.cli.shared.parameters import WORD, NumberRange
from roost.cli.shared.terminal import echo_line
from roost.client import questions
from roost.client.errors import ChangeFailed, NotConfigured, NotOffered, QuestionRefused
from roost.client.questions import Json, Questions, ServerChange
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import counted, done_or_planned, with_next

_COLUMNS = columns_of("KIND, WHAT, TEXT, MEND?")
_COLUMNS_OF_DELETION = columns_of("KIND, WHAT, DELETED, TEXT, MEND?")
_ORPHAN = "orphan"
_STANDARD_INPUT = "-"
_SHOWN_MAX = 60


@server_command()
@click.option(
    "--against",
    type=WORD,
    metavar="FILE",
    help="The uuids of all consumers that exist, one on each line; `-` reads standard input. "
    "Others are orphans.",
)
@click.option(
    "--type",
    "types",
    type=WORD,
    metavar="TYPE",
    multiple=True,
    help="With --against: only consumers of this type can be orphans. May be repeated.",
)
@click.option("--delete", is_flag=True, help="Delete the allocations of all orphans.")
@click.option(
    "--at-most-percent",
    type=NumberRange(0, 100),
    metavar="NUMBER",
    help="With --delete: delete nothing if more of all consumers are orphans. [default: 5]",
)
@dry_run_option
def audit(
    *,
    server: Questions,
    against: str | None,
    types: tuple[str, ...],
    delete: bool,
    at_most_percent: float | None,
    dry_run: bool,
) -> Output:
    """Look for orphans, inventories over their capacity, and other things that are wrong.

    A consumer that changed after the list began is no orphan. For a file, that is the time of its
    last change; for standard input, the start of this command. Give a file that took long to write
    the time when its listing began, with `touch -d`.

    Exit status: 0 nothing was wrong, 3 something was, also if it is deleted now, 1 after an error.

    \b
    Examples:
      roost audit
      openstack server list --all-projects -f value -c ID | roost audit --against - --type INSTANCE
      roost audit --against servers.txt --type INSTANCE --delete --dry-run
    """
    started = datetime.now(UTC)
    if against is None and (types or delete):
        raise click.UsageError("--type and --delete need --against.")
    if at_most_percent is not None and not delete:
        raise click.UsageError("--at-most-percent needs --delete.")
    body: dict[str, Any] = {}
    if against is not None:
        body = _known(against, started)
        if delete and not body["known_consumers"]:
            raise NotConfigured(
                with_next(
                    f"{against} has no uuid, so all consumers would be orphans. Did the program "
                    "that writes it fail?",
                    "roost audit",
                )
            )
    if types:
        body["types"] = list(types)
    if delete:
        body["delete"] = True
    if at_most_percent is not None:
        body["at_most_percent"] = at_most_percent
    answer = _asked(server, questions.audit(body), deletes=delete and not dry_run)
    return _output(answer, delete=delete, dry_run=dry_run)


def _known(against: str, started: datetime) -> dict[str, Any]:
    """The list of a file or of standard input, and when it was begun."""
    if against == _STANDARD_INPUT:
        if isinstance(sys.stdin, io.TextIOWrapper):
            # Bytes that are no text are no uuid, and their line is told.
            sys.stdin.reconfigure(errors="replace")
            started = _begun(sys.stdin, started)
        return _body(_uuids(sys.stdin, "standard input"), started)
    with open(against, encoding="utf-8", errors="replace") as file:
        return _body(_uuids(file, against), _begun(file, started))


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


def _body(uuids: Iterable[str], known_at: datetime) -> dict[str, Any]:
    # Some databases keep whole seconds: a fraction would make a new consumer seem older.
    known = f"{known_at.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
    return {"known_consumers": list(dict.fromkeys(uuids)), "known_at": known}


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
