"""What the doctor looks at: single inventories, the whole cloud, and the server itself."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from roost.client.cloud_reader import NO_PROJECT, CloudProvider
from roost.client.errors import PlacementError, TransportFailed, UnreadableAnswer
from roost.client.lookup import provider_argument
from roost.client.ownership.owner_names import is_owner_trait
from roost.client.placement import ProviderBody
from roost.client.placement.placement import Administration
from roost.client.provider_tree import SHARING_TRAIT
from roost.client.shapes import JsonShape, fits
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.retrying import RetryingTransport
from roost.client.versions import NEWEST, newest_of_server
from roost.model.identifiers import is_custom
from roost.model.inventory import Inventory
from roost.model.text import counted, plain_number, whole_number

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


class _Correction(NamedTuple):
    """The right value of a field, and what the wrong one means."""

    check: str
    field: str
    value: float
    consequence: str


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
                _Correction("no-ratio", "allocation_ratio", 1.0, "so it offers nothing"),
            )
        elif inventory.reserved > inventory.total:
            total = inventory.total
            consequence = f"and its total is {total}"
            yield _wrong_field(
                subject,
                inventory,
                _Correction("reserved-above-total", "reserved", total, consequence),
            )
        elif used > inventory.capacity:
            yield _over_capacity(subject, inventory, used)
    for name in sorted(provider.used.keys() - provider.inventories.keys()):
        amount = provider.used[name]
        yield Diagnosis(
            Grade.FAULT,
            "allocation-without-inventory",
            f"{subject.name}: consumers hold {amount} {name}, and it has no inventory of {name}.",
            f"roost provider set {subject.argument} --inventory {name}={amount}",
            subject,
        )


def _over_capacity(subject: ProviderName, inventory: Inventory, used: int) -> Diagnosis:
    """More is held than the capacity: less reserved may be enough, or consumers have to move."""
    name = inventory.resource_class
    most_reserved = inventory.total - math.ceil(used / inventory.allocation_ratio)
    if 0 <= most_reserved < inventory.reserved:
        command = (
            f"roost provider set {subject.argument} --inventory {name}:reserved={most_reserved}"
        )
    else:
        command = f"roost consumer list --provider {subject.argument}"
    return Diagnosis(
        Grade.FAULT,
        "over-capacity",
        f"{subject.name}: consumers hold {used} {name}, and its capacity is "
        f"{whole_number(inventory.capacity)}.",
        command,
        subject,
    )


def _wrong_field(subject: ProviderName, inventory: Inventory, correction: _Correction) -> Diagnosis:
    name, field = inventory.resource_class, correction.field
    assignment = f"{name}:{field}={plain_number(correction.value)}"
    return Diagnosis(
        Grade.FAULT,
        correction.check,
        f"{subject.name}: {field} of {name} is {plain_number(getattr(inventory, field))}, "
        f"{correction.consequence}.",
        f"roost provider set {subject.argument} --inventory {assignment}",
        subject,
    )


def _units(subject: ProviderName, inventory: Inventory) -> Iterator[Diagnosis]:
    """Units that leave no amount that a consumer may hold."""
    name = inventory.resource_class
    smallest = _smallest_amount(inventory)
    if smallest is None or smallest > inventory.max_unit:
        assignments = (("min_unit", 1), ("max_unit", max(1, inventory.total)), ("step_size", 1))
        options = " ".join(f"--inventory {name}:{field}={value}" for field, value in assignments)
        yield Diagnosis(
            Grade.FAULT,
            "no-amount-allowed",
            f"{subject.name}: no amount of {name} is allowed, with min_unit {inventory.min_unit}, "
            f"max_unit {inventory.max_unit} and step_size {inventory.step_size}.",
            f"roost provider set {subject.argument} {options}",
            subject,
        )
    elif 0 < inventory.capacity < smallest:
        yield Diagnosis(
            Grade.WARNING,
            "smallest-amount-above-capacity",
            f"{subject.name}: the smallest amount of {name} is {smallest}, and its capacity is "
            f"{whole_number(inventory.capacity)}.",
            f"roost provider set {subject.argument} {_room_for_one(inventory)}",
            subject,
        )


def _room_for_one(inventory: Inventory) -> str:
    """The options that make a capacity hold the smallest amount.

    Smaller units are enough for a capacity of one or more; below that, the ratio is too small.

    >>> _room_for_one(Inventory("VCPU", 4, reserved=3, allocation_ratio=0.5))
    '--inventory VCPU:allocation_ratio=1'
    """
    assignments = {}
    if inventory.capacity < 1:
        # A capacity above zero has a total above what is reserved, so this ratio leaves one.
        assignments["allocation_ratio"] = 1
    if _smallest_amount(inventory) != 1:
        assignments |= {"min_unit": 1, "step_size": 1}
    name = inventory.resource_class
    return " ".join(f"--inventory {name}:{field}={value}" for field, value in assignments.items())


def _smallest_amount(inventory: Inventory) -> int | None:
    """The smallest amount that the units allow; `None` if a step of zero allows none.

    >>> _smallest_amount(Inventory("DISK_GB", 100, min_unit=15, step_size=10))
    20
    """
    if inventory.step_size < 1:
        return None
    steps = math.ceil(max(1, inventory.min_unit) / inventory.step_size)
    return steps * inventory.step_size


def sharing_findings(server: Administration, bodies: Sequence[ProviderBody]) -> Iterator[Diagnosis]:
    """Sharing providers that lend to no tree."""
    if SHARING_TRAIT not in server.known_traits([SHARING_TRAIT]):
        return
    among = {body["uuid"] for body in bodies}
    for body in server.matching_providers([("required", SHARING_TRAIT)]):
        if body["uuid"] not in among:
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


def class_findings(
    server: Administration, providers: Iterable[CloudProvider]
) -> Iterator[Diagnosis]:
    """Custom classes of which no provider has inventory."""
    in_use: set[str] = set()
    for provider in providers:
        in_use |= provider.inventories.keys() | provider.used.keys()
    unused = {name for name in server.known_resource_classes() - in_use if is_custom(name)}
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


def tree_findings(providers: Sequence[CloudProvider]) -> Iterator[Diagnosis]:
    """Trees without any inventory, and roots that look like one host with two names."""
    offers: dict[str, bool] = {}
    for provider in providers:
        root = provider.body["root_provider_uuid"]
        offers[root] = offers.get(root, False) or bool(provider.inventories)
    roots = {one.uuid: one for one in providers if one.body["parent_provider_uuid"] is None}
    for uuid, has_inventory in offers.items():
        if not has_inventory and uuid in roots:
            subject = ProviderName(uuid, roots[uuid].name)
            yield Diagnosis(
                Grade.NOTE,
                "tree-without-inventory",
                f"The tree of {subject.name} has no inventory: its host has not reported.",
                f"roost agent --driver linux --once --name {subject.argument}",
                subject,
            )
    yield from _namesakes({one.name: one for one in roots.values()}, _consumers_by_tree(providers))


def _consumers_by_tree(providers: Sequence[CloudProvider]) -> Mapping[str, set[str]]:
    """The consumers that hold something of each tree, by the uuid of its root."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for provider in providers:
        found[provider.body["root_provider_uuid"]] |= provider.allocations.keys()
    return found


def _namesakes(
    roots: Mapping[str, CloudProvider], consumers: Mapping[str, set[str]]
) -> Iterator[Diagnosis]:
    """Roots such as compute-1 and compute-1.example: a host that was given a longer name."""
    for name, provider in sorted(roots.items()):
        short = name.partition(".")[0]
        if short == name or short not in roots:
            continue
        other = roots[short]
        held = {one.uuid: len(consumers[one.uuid]) for one in (other, provider)}
        # Of two trees in use, the one with fewer consumers is easier to empty.
        stale = min((other, provider), key=lambda one: held[one.uuid])
        subject = ProviderName(stale.uuid, stale.name)
        yield Diagnosis(
            Grade.WARNING,
            "one-host-two-providers",
            f"{short} ({counted(held[other.uuid], 'consumer')}) and {name} "
            f"({counted(held[provider.uuid], 'consumer')}) look like one host that reports under "
            "two names.",
            f"roost consumer list --provider {subject.argument}"
            if held[stale.uuid]
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

    def as_json(self) -> dict[str, Any]:
        """The facts as a JSON value."""
        return asdict(self)

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
        return Diagnosis(
            Grade.FAULT,
            "refused",
            _in_one_line(error),
            "roost doctor --token TOKEN_OF_AN_ADMINISTRATOR",
        )
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
