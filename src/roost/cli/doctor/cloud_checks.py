"""Checks of the whole cloud: sharing providers, names without use, trees without inventory."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from roost.cli.doctor.diagnosis import Diagnosis, Grade, ProviderName
from roost.client.consumers import NO_PROJECT
from roost.client.gathering import GatheredProvider
from roost.client.ownership.owner_names import is_owner_trait
from roost.client.placement import ProviderBody
from roost.client.placement.administration import Administration
from roost.client.provider_tree import SHARING_TRAIT
from roost.model.identifiers import is_custom
from roost.model.text import counted

_NAMES_MAX = 8
"""The names that one finding lists at most."""


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
    server: Administration, providers: Iterable[GatheredProvider]
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


def tree_findings(providers: Sequence[GatheredProvider]) -> Iterator[Diagnosis]:
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


def _consumers_by_tree(providers: Sequence[GatheredProvider]) -> Mapping[str, set[str]]:
    """The consumers that hold something of each tree, by the uuid of its root."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for provider in providers:
        found[provider.body["root_provider_uuid"]] |= provider.allocations.keys()
    return found


def _namesakes(
    roots: Mapping[str, GatheredProvider], consumers: Mapping[str, set[str]]
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
