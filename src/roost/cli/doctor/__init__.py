"""The command `roost doctor`, which looks for what is wrong with a server and its cloud."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import click
from rich.console import Group
from rich.text import Text

from roost.cli.bars import progress_bar
from roost.cli.command import command
from roost.cli.completers import PROVIDER
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.doctor.checks import (
    Diagnosis,
    Grade,
    ServerFacts,
    class_findings,
    examine_server,
    inventory_findings,
    project_findings,
    refused,
    sharing_findings,
    trait_findings,
    tree_findings,
)
from roost.cli.output import Output, OutputForm, Table, columns_of, output_options, print_output
from roost.cli.terminal import plain, unbroken
from roost.client.errors import NotConfigured, PlacementError
from roost.client.gathering import gather
from roost.client.lookup import NoSuchProvider, find_provider
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.model.text import counted, printable

_SHOWN_OF_A_CHECK = 20
_COLUMNS = columns_of("SEVERITY, CHECK, PROVIDER, TEXT, COMMAND")
_STYLES = {Grade.FAULT: "bold red", Grade.WARNING: "bold yellow", Grade.NOTE: "bold blue"}


class _CloudSize(NamedTuple):
    """How much of a cloud the doctor has seen; `None` for what it did not see."""

    providers: int | None = None
    trees: int | None = None
    consumers: int | None = None

    def sentence(self) -> str:
        """The numbers for a person."""
        if self.providers is None or self.trees is None:
            return "The number of providers is unknown."
        size = f"{counted(self.providers, 'provider')} in {counted(self.trees, 'tree')}"
        return size if self.consumers is None else f"{size}, {counted(self.consumers, 'consumer')}"


_UNSEEN = _CloudSize()


@dataclass(frozen=True, slots=True)
class _Examination:
    """The facts about a server and its cloud, and all findings."""

    server: ServerFacts
    findings: Sequence[Diagnosis]
    size: _CloudSize = _UNSEEN

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing worse than a note."""
        return all(one.severity is Grade.NOTE for one in self.findings)


@command()
@click.argument("names", type=PROVIDER, nargs=-1)
@click.option("--quick", is_flag=True, help="Do not ask every provider for its inventories.")
@output_options
@connection_options
def doctor(
    *, connection: ConnectionSettings, names: tuple[str, ...], quick: bool, output: OutputForm
) -> None:
    """Look for what is wrong with a server: is it reachable and ready, and is its cloud sound?

    The doctor finds providers over capacity, allocations without inventory, inventories that
    offer nothing, sharing providers that lend to no tree, and more. Each finding has the command
    that mends it. With names, the doctor looks at the trees of these providers only. It asks each
    provider, which takes a while on a large cloud.

    \b
    Examples:
      roost doctor
      roost doctor compute-1 --json
      roost doctor --quick --url https://placement.example

    \b
    Exit status: 0 if nothing is worse than a note, 1 otherwise.
    """
    # A server that is not ready is a finding at once, and no reason to ask again.
    with connection.open(repeats=0) as transport:
        facts, findings = examine_server(transport)
    examination = _Examination(facts, findings)
    if facts.newest_version is not None:
        try:
            with connection.open() as transport:
                server = Administration(transport)
                examination = _examine_cloud(server, facts, findings, names, quick=quick)
        except (NoSuchProvider, NotConfigured):
            raise
        except PlacementError as error:
            examination = _Examination(facts, [*findings, refused(error)])
    print_output(_output(examination), output)
    sys.exit(0 if examination.is_healthy else 1)


def _examine_cloud(
    server: Administration,
    facts: ServerFacts,
    findings: Sequence[Diagnosis],
    names: tuple[str, ...],
    *,
    quick: bool,
) -> _Examination:
    bodies = _trees(server, names) if names else server.providers()
    found = [*findings, *sharing_findings(server, bodies)]
    if not names:
        found += [*trait_findings(server), *project_findings(server)]
    consumers: set[str] = set()
    if not quick:
        with progress_bar("asking providers", transient=True) as advance:
            providers = list(gather(server, bodies, advance))
        for provider in providers:
            consumers |= provider.allocations.keys()
            found += inventory_findings(provider)
        found += tree_findings(providers)
        if not names:
            found += class_findings(server, providers)
    roots = {body["root_provider_uuid"] for body in bodies}
    order = list(Grade)
    found.sort(key=lambda one: order.index(one.severity))
    size = _CloudSize(len(bodies), len(roots), None if quick else len(consumers))
    return _Examination(facts, found, size)


def _trees(server: Administration, names: tuple[str, ...]) -> list[ProviderBody]:
    found: dict[str, ProviderBody] = {}
    for name in names:
        for body in server.tree(find_provider(server, name)["uuid"]):
            found[body["uuid"]] = body
    return list(found.values())


def _output(examination: _Examination) -> Output:
    rows = [
        [
            one.severity.value,
            one.check,
            one.provider.name if one.provider else None,
            one.text,
            one.command,
        ]
        for one in examination.findings
    ]
    value = {
        "healthy": examination.is_healthy,
        "server": examination.server.as_json(),
        **examination.size._asdict(),
        "findings": [one.as_json() for one in examination.findings],
    }
    return Output(Table(_COLUMNS, rows), value, Group(*_lines(examination)))


def _lines(examination: _Examination) -> Iterator[Text]:
    yield plain(examination.server.sentence())
    if examination.server.newest_version is not None:
        yield plain(examination.size.sentence())
    shown: Counter[str] = Counter()
    for one in examination.findings:
        shown[one.check] += 1
        if shown[one.check] <= _SHOWN_OF_A_CHECK:
            yield Text()
            text = printable(one.text)
            yield Text.assemble((f"{one.severity.value}: ", _STYLES[one.severity]), text)
            yield unbroken(f"    {one.command}", "bold")
    for check, count in shown.items():
        if count > _SHOWN_OF_A_CHECK:
            yield Text()
            yield plain(
                f"... and {count - _SHOWN_OF_A_CHECK} more of {check}: --output csv has all."
            )
    yield Text()
    yield plain(_sum(examination.findings))


def _sum(findings: Sequence[Diagnosis]) -> str:
    counts = Counter(one.severity for one in findings)
    if not counts:
        return "Nothing is wrong."
    return ", ".join(
        counted(counts[severity], severity.value) for severity in Grade if counts[severity]
    )
