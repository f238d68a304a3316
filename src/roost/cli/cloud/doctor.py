"""The command `roost doctor`, which looks for what is wrong with a server and its cloud."""

from __future__ import annotations

import math
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, NamedTuple

import click
from rich.console import Group
from rich.text import Text

from roost.cli.shared.bars import progress_bar
from roost.cli.shared.command import command
from roost.cli.shared.completers import PROVIDER
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.exit_status import yes_or_no
from roost.cli.shared.output import (
    Output,
    OutputForm,
    Table,
    columns_of,
    output_options,
    print_output,
)
from roost.cli.shared.terminal import plain, unbroken
from roost.client.errors import (
    NoSuchProvider,
    NotConfigured,
    NotOffered,
    PlacementError,
    QuestionRefused,
    TransportFailed,
    UnreadableAnswer,
)
from roost.client.placement import Placement
from roost.client.placement.placement import Administration
from roost.client.provider_tree import SHARING_TRAIT
from roost.client.questions import Questions, audit
from roost.client.reading.cloud_provider import CloudProvider
from roost.client.reading.cloud_reader import (
    NO_PROJECT,
    CloudReader,
    Facet,
    ProviderChoice,
    TellProgress,
)
from roost.client.reading.consumers import consumers_of
from roost.client.reading.lookup import find_provider, provider_argument
from roost.client.shapes import JsonShape, fits
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.retrying import RetryingTransport
from roost.client.versions import NEWEST, newest_of_server
from roost.model.identifiers import is_custom
from roost.model.inventory import Inventory
from roost.model.text import counted, printable, with_separators
from roost.model.trees.difference import field_text
from roost.model.trees.owner_names import is_owner_trait

_NAMES_MAX = 8
"""The names that one finding lists at most."""

_READINESS: JsonShape = {"version": str, "checks": {str: {"ok?": bool, "text?": str}}}


class Grade(StrEnum):
    """How grave a finding is; a cloud with notes only is sound."""

    FAULT = "fault"
    WARNING = "warning"
    NOTE = "note"


class ProviderName(NamedTuple):
    """The provider that a finding is about."""

    uuid: str
    name: str

    @property
    def argument(self) -> str:
        """The provider as a word of a command."""
        return provider_argument(self._asdict())

    def setting(self, *assignments: str) -> str:
        """The command that sets fields of its inventories."""
        options = " ".join(f"--inventory {one}" for one in assignments)
        return f"roost provider set {self.argument} {options}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding."""

    severity: Grade
    # The name of the check, for programs.
    check: str
    text: str
    # The command that mends it, or that shows what to mend.
    command: str
    provider: ProviderName | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding as a JSON value."""
        return {
            **asdict(self),
            "severity": self.severity.value,
            "provider": self.provider._asdict() if self.provider else None,
        }


def inventory_findings(provider: CloudProvider) -> Iterator[Diagnosis]:
    """What is wrong with the inventories of a provider."""
    subject = ProviderName(provider.uuid, provider.name)
    for name in sorted(provider.inventories):
        inventory, used = provider.inventory(name), provider.used.get(name, 0)
        yield from _units(subject, inventory)
        if inventory.allocation_ratio <= 0:
            yield _wrong_field(
                subject,
                inventory,
                "allocation_ratio",
                1,
                check="no-ratio",
                meaning="so it offers nothing",
            )
        elif (total := inventory.total) < inventory.reserved:
            meaning = f"and its total is {with_separators(total)}"
            yield _wrong_field(
                subject, inventory, "reserved", total, check="reserved-above-total", meaning=meaning
            )
        elif used > inventory.capacity:
            yield _over_capacity(subject, inventory, used)
    for name in sorted(provider.used.keys() - provider.inventories.keys()):
        amount = provider.used[name]
        yield Diagnosis(
            Grade.FAULT,
            "allocation-without-inventory",
            f"{subject.name}: consumers hold {with_separators(amount)} {name}, and it has "
            f"no inventory of {name}.",
            subject.setting(f"{name}={amount}"),
            subject,
        )


def _over_capacity(subject: ProviderName, inventory: Inventory, used: int) -> Diagnosis:
    """More is held than the capacity: less reserved may be enough, or consumers have to move."""
    name = inventory.resource_class
    most_reserved = inventory.total - math.ceil(used / inventory.allocation_ratio)
    less_reserved = 0 <= most_reserved < inventory.reserved
    return Diagnosis(
        Grade.FAULT,
        "over-capacity",
        f"{subject.name}: consumers hold {with_separators(used)} {name}, and its capacity is "
        f"{with_separators(inventory.capacity)}.",
        subject.setting(f"{name}:reserved={most_reserved}")
        if less_reserved
        else f"roost consumer list --provider {subject.argument}",
        subject,
    )


def _wrong_field(
    subject: ProviderName,
    inventory: Inventory,
    field: str,
    right: int,
    *,
    check: str,
    meaning: str,
) -> Diagnosis:
    """A field has a wrong value. `right` mends it, and `meaning` says what the wrong one means."""
    name, value = inventory.resource_class, field_text(getattr(inventory, field))
    return Diagnosis(
        Grade.FAULT,
        check,
        f"{subject.name}: {field} of {name} is {value}, {meaning}.",
        subject.setting(f"{name}:{field}={right}"),
        subject,
    )


def _units(subject: ProviderName, inventory: Inventory) -> Iterator[Diagnosis]:
    """Units that leave no amount that a consumer may hold."""
    name = inventory.resource_class
    smallest = _smallest_amount(inventory)
    if smallest is None or smallest > inventory.max_unit:
        least, most, step = map(
            with_separators, (inventory.min_unit, inventory.max_unit, inventory.step_size)
        )
        units = {"min_unit": 1, "max_unit": max(1, inventory.total), "step_size": 1}
        yield Diagnosis(
            Grade.FAULT,
            "no-amount-allowed",
            f"{subject.name}: no amount of {name} is allowed, with min_unit {least}, max_unit "
            f"{most} and step_size {step}.",
            subject.setting(*_assignments(name, units)),
            subject,
        )
    elif 0 < inventory.capacity < smallest:
        yield Diagnosis(
            Grade.WARNING,
            "smallest-amount-above-capacity",
            f"{subject.name}: the smallest amount of {name} is {with_separators(smallest)}, "
            f"and its capacity is {with_separators(inventory.capacity)}.",
            subject.setting(*_assignments(name, _room_for_one(inventory))),
            subject,
        )


def _assignments(name: str, fields: Mapping[str, int]) -> list[str]:
    return [f"{name}:{field}={value}" for field, value in fields.items()]


def _room_for_one(inventory: Inventory) -> dict[str, int]:
    """The fields that make a capacity hold the smallest amount.

    Smaller units are enough for a capacity of one or more; below that, the ratio is too small.

    >>> _room_for_one(Inventory("VCPU", 4, reserved=3, allocation_ratio=0.5))
    {'allocation_ratio': 1}
    """
    # A capacity above zero has a total above what is reserved, so this ratio leaves one.
    ratio = {"allocation_ratio": 1} if inventory.capacity < 1 else {}
    units = {"min_unit": 1, "step_size": 1} if _smallest_amount(inventory) != 1 else {}
    return ratio | units


def _smallest_amount(inventory: Inventory) -> int | None:
    """The smallest amount that the units allow; `None` if a step of zero allows none.

    >>> _smallest_amount(Inventory("DISK_GB", 100, min_unit=15, step_size=10))
    20
    """
    if inventory.step_size < 1:
        return None
    steps = math.ceil(max(1, inventory.min_unit) / inventory.step_size)
    return steps * inventory.step_size


def sharing_findings(server: Administration, roots: Collection[str]) -> Iterator[Diagnosis]:
    """Sharing providers of these trees that lend to no other tree."""
    if SHARING_TRAIT not in server.known_traits([SHARING_TRAIT]):
        return
    for body in server.matching_providers([("required", SHARING_TRAIT)]):
        if body["root_provider_uuid"] not in roots:
            continue
        subject = ProviderName(body["uuid"], body["name"])
        _, aggregates = server.aggregates(body["uuid"])
        if not aggregates:
            yield Diagnosis(
                Grade.FAULT,
                "sharing-without-aggregate",
                f"{subject.name} shares inventory, and is in no aggregate: it lends to no tree.",
                f"roost provider set {subject.argument} --add-aggregate UUID_OF_THE_AGGREGATE",
                subject,
            )
            continue
        members = server.matching_providers([("member_of", f"in:{','.join(sorted(aggregates))}")])
        reached = {
            member["root_provider_uuid"]
            for member in members
            if member["root_provider_uuid"] != body["root_provider_uuid"]
        }
        if not reached:
            yield Diagnosis(
                Grade.WARNING,
                "sharing-reaches-no-tree",
                f"{subject.name} shares inventory, and no other tree is in its aggregate.",
                f"roost provider set HOST --add-aggregate {min(aggregates)}",
                subject,
            )


def trait_findings(server: Administration) -> Iterator[Diagnosis]:
    """Custom traits that no provider has."""
    unused = {
        name
        for name in server.trait_names() - server.trait_names(associated=True)
        if is_custom(name) and not is_owner_trait(name)
    }
    if unused:
        yield _unused("trait-on-no-provider", "custom traits are on no provider", "trait", unused)


def class_findings(server: Administration, in_use: Collection[str]) -> Iterator[Diagnosis]:
    """Custom classes of which no provider has inventory."""
    known = server.known_resource_classes()
    unused = {name for name in known.difference(in_use) if is_custom(name)}
    if unused:
        yield _unused(
            "class-without-inventory", "custom classes have no inventory", "class", unused
        )


def _unused(check: str, what: str, noun: str, names: Collection[str]) -> Diagnosis:
    some = sorted(names)[:_NAMES_MAX]
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    return Diagnosis(
        Grade.NOTE,
        check,
        f"{len(names)} {what}: {', '.join(some)}{more}.",
        f"roost {noun} delete {' '.join(map(shlex.quote, some))} --dry-run",
    )


def project_findings(server: Administration) -> Iterator[Diagnosis]:
    """Consumers that old clients made without a project."""
    if server.usages_of_project(NO_PROJECT):
        yield Diagnosis(
            Grade.WARNING,
            "consumers-without-project",
            f"Consumers without project hold resources (project {NO_PROJECT}).",
            "nova-manage placement heal_allocations --dry-run",
        )


@dataclass
class SeenCloud:
    """What the doctor keeps of the providers that it has seen. A cloud may have a million."""

    providers: int = 0
    consumers: set[str] = field(default_factory=set)
    findings: list[Diagnosis] = field(default_factory=list)
    # The name of each root by its uuid; `None` if the root is not among the providers.
    roots: dict[str, str | None] = field(default_factory=dict)
    # The roots of trees with inventory.
    offering: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)

    def see(self, provider: CloudProvider) -> None:
        """Look at one provider."""
        root = str(provider.body["root_provider_uuid"])
        self.providers += 1
        self.consumers |= provider.allocations.keys()
        self.findings += inventory_findings(provider)
        self.roots.setdefault(root, None)
        if provider.uuid == root:
            self.roots[root] = provider.name
        if provider.inventories:
            self.offering.add(root)
        self.classes.update(provider.inventories, provider.used)


def tree_findings(server: Placement, seen: SeenCloud) -> Iterator[Diagnosis]:
    """Trees without any inventory, and roots that look like one host with two names."""
    roots = [ProviderName(uuid, name) for uuid, name in seen.roots.items() if name is not None]
    for root in roots:
        if root.uuid not in seen.offering:
            yield Diagnosis(
                Grade.NOTE,
                "tree-without-inventory",
                f"The tree of {root.name} has no inventory: its host has not reported.",
                f"roost agent --driver linux --once --name {root.argument}",
                root,
            )
    yield from _namesakes(server, {root.name: root for root in roots})


def _consumers_on(server: Placement, root: ProviderName) -> int:
    """How many consumers hold something of a tree."""
    chosen = ProviderChoice(in_trees=[root.uuid])
    return len(consumers_of(CloudReader(server).providers(chosen, (Facet.ALLOCATIONS,))))


def _namesakes(server: Placement, roots: Mapping[str, ProviderName]) -> Iterator[Diagnosis]:
    """Roots such as compute-1 and compute-1.example: a host that was given a longer name."""
    for name, provider in sorted(roots.items()):
        short = name.partition(".")[0]
        if short == name or short not in roots:
            continue
        other = roots[short]
        held = {one.uuid: _consumers_on(server, one) for one in (other, provider)}
        # Of two trees in use, the one with fewer consumers is easier to empty.
        subject = min((other, provider), key=lambda one: held[one.uuid])
        yield Diagnosis(
            Grade.WARNING,
            "one-host-two-providers",
            f"{short} ({counted(held[other.uuid], 'consumer')}) and {name} "
            f"({counted(held[provider.uuid], 'consumer')}) look like one host that reports under "
            "two names.",
            f"roost consumer list --provider {subject.argument}"
            if held[subject.uuid]
            else f"roost provider delete {subject.argument} --with-children --dry-run",
            subject,
        )


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself; `None` for what it does not say."""

    address: str
    newest_version: str | None = None
    # The version of Roost; another Placement server has none.
    roost: str | None = None
    ready: bool | None = None

    def sentence(self) -> str:
        """The facts for a person."""
        if self.newest_version is None:
            return f"{self.address}: no answer of a placement server"
        kind = f"Roost {self.roost}" if self.roost else "no Roost server"
        state = {None: "", True: ", ready", False: ", not ready"}[self.ready]
        return f"{self.address}: placement up to {self.newest_version}, {kind}{state}"


def examine_server(transport: RetryingTransport) -> tuple[ServerFacts, list[Diagnosis]]:
    """Ask a server what it is, and whether it is ready."""
    address = transport.describe()
    try:
        newest = newest_of_server(transport)
    except PlacementError as error:
        return ServerFacts(address), [_unreachable(error)]
    found = []
    if newest < NEWEST:
        found.append(
            Diagnosis(
                Grade.NOTE,
                "old-version",
                f"The server speaks placement {newest} at most, and {NEWEST} is the newest.",
                "pip install --upgrade 'roost[server]'",
            )
        )
    try:
        answer = transport.send(PlacementRequest("GET", "/readyz", repeatable=True))
    except TransportFailed as error:
        return ServerFacts(address, str(newest)), [*found, _unreachable(error)]
    readiness = _readiness(answer)
    if readiness is None:
        return ServerFacts(address, str(newest)), found
    found += _unready(readiness)
    version = str(readiness["version"])
    return ServerFacts(address, str(newest), version, answer.status == 200), found


def refused(error: PlacementError) -> Diagnosis:
    """The finding about a server that answers, but not this caller, or not now."""
    if error.status in (401, 403):
        command = "roost doctor --token TOKEN_OF_AN_ADMINISTRATOR"
        return Diagnosis(Grade.FAULT, "refused", _in_one_line(error), command)
    return Diagnosis(Grade.FAULT, "failed", _in_one_line(error), "roost doctor")


def _unreachable(error: PlacementError) -> Diagnosis:
    command = "roost doctor --url http://HOST:8778"
    return Diagnosis(Grade.FAULT, "unreachable", _in_one_line(error), command)


def _in_one_line(error: PlacementError) -> str:
    """The text of an error; servers put empty lines between a general sentence and the cause."""
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip())


def _readiness(answer: PlacementResponse) -> dict[str, Any] | None:
    """The body of `/readyz`; `None` if the server has no such page."""
    if answer.status not in (200, 503):
        return None
    try:
        body = answer.json
    except UnreadableAnswer:
        return None
    return body if fits(body, _READINESS) else None


def _unready(readiness: dict[str, Any]) -> Iterator[Diagnosis]:
    for name, check in sorted(readiness["checks"].items()):
        if not check.get("ok"):
            yield Diagnosis(
                Grade.FAULT,
                f"not-ready-{name}",
                f"The server is not ready: {name}: {check.get('text')}",
                "roost check-config --connect",
            )


_WITHOUT_CONSUMERS = (Facet.INVENTORIES, Facet.USAGES)
_WITH_CONSUMERS = (Facet.INVENTORIES, Facet.ALLOCATIONS)
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
    that mends it. With names, the doctor looks at the trees of these providers only. Roost tells it
    all of that in few answers, except allocations without inventory: name a provider, or see `roost
    db check`. Other servers are asked for each provider, which takes a while on a large cloud.

    \b
    Examples:
      roost doctor
      roost doctor compute-1 --json
      roost doctor --quick --url https://placement.example

    \b
    Exit status: 0 if nothing is worse than a note, 3 otherwise, also if no server answers.
    """
    # A server that is not ready is a finding at once, and no reason to ask again.
    with connection.open(repeats=0) as transport:
        facts, findings = examine_server(transport)
    examination = _Examination(facts, findings)
    if facts.newest_version is not None:
        try:
            with connection.open() as transport:
                server = Questions(transport)
                examination = _examine_cloud(server, facts, findings, names, quick=quick)
        except (NoSuchProvider, NotConfigured):
            raise
        except PlacementError as error:
            examination = _Examination(facts, [*findings, refused(error)])
    print_output(_output(examination), output)
    sys.exit(yes_or_no(examination.is_healthy))


def _examine_cloud(
    server: Questions,
    facts: ServerFacts,
    findings: Sequence[Diagnosis],
    names: tuple[str, ...],
    *,
    quick: bool,
) -> _Examination:
    trees = [find_provider(server, name)["uuid"] for name in names]
    chosen = ProviderChoice(in_trees=trees if names else None)
    with progress_bar("asking providers", transient=True) as advance:
        seen, consumers = _seen(server, chosen, advance, quick=quick)
    found = [*findings, *seen.findings, *sharing_findings(server, seen.roots)]
    if not names:
        found += [*trait_findings(server), *project_findings(server)]
    if not quick:
        found += tree_findings(server, seen)
        if not names:
            found += class_findings(server, seen.classes)
    order = list(Grade)
    found.sort(key=lambda one: order.index(one.severity))
    return _Examination(facts, found, _CloudSize(seen.providers, len(seen.roots), consumers))


def _seen(
    server: Questions, chosen: ProviderChoice, tell: TellProgress, *, quick: bool
) -> tuple[SeenCloud, int | None]:
    """What the doctor sees, and the number of consumers, if it looks that far.

    Roost has both in few answers. Elsewhere, the allocations of each provider tell its consumers.
    """
    seen = SeenCloud()
    known = None if quick or chosen.in_trees is not None else _consumer_count(server)
    facets = () if quick else _WITH_CONSUMERS if known is None else _WITHOUT_CONSUMERS
    for provider in CloudReader(server).providers(chosen, facets, tell):
        seen.see(provider)
    return seen, None if quick else len(seen.consumers) if known is None else known


def _consumer_count(server: Questions) -> int | None:
    """The number of all consumers; `None` if the server does not tell it."""
    try:
        return int(server.answer(audit({}).rehearsal)["consumers"])
    except NotOffered:
        return None
    except QuestionRefused as error:
        # A policy may allow a caller every provider, but no audit.
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return None


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
        "server": asdict(examination.server),
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
