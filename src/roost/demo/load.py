"""Filling an empty database with the demo cloud."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import Progress

from roost.demo.hosts import build_hosts
from roost.demo.tenants import build_tenants
from roost.demo.world import NEARLY_FITS, ConsumerSpec, ProviderSpec, World
from roost.model.consumers import Claim
from roost.model.identifiers import is_custom
from roost.service.tables.aggregates import replace_aggregates
from roost.service.tables.claims import claim_for_several
from roost.service.tables.inventories import replace_inventories
from roost.service.tables.providers import create_provider
from roost.service.tables.resource_classes import ensure_resource_class
from roost.service.tables.traits import ensure_trait, replace_provider_traits
from roost.store.database import Database
from roost.store.rows.providers import any_exists
from roost.store.rows.vocabulary import lock_resource_class
from roost.store.transaction import Finished, Transaction

# Takes the number of providers that are loaded so far.
ShowProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """How much was loaded: zero if the database had providers already."""

    providers: int = 0
    consumers: int = 0

    @property
    def loaded(self) -> bool:
        """Whether the database was empty and now has the demo cloud."""
        return self.providers > 0


def load_demo(database: Database, worlds: Sequence[World] | None = None) -> DemoSummary:
    """Load the demo cloud, or these worlds, unless the database has providers.

    One transaction loads all of it. Several processes may do this at the same time: one process
    loads, and each further process finds its providers. On a terminal, a bar shows the progress.
    """
    worlds = [demo_cloud()] if worlds is None else worlds
    with _progress(sum(len(world.providers) for world in worlds)) as show_progress:
        return database.write(_load_if_empty, worlds, show_progress)


def demo_cloud() -> World:
    """The hosts and their tenants. Each call builds them anew: only `--demo` needs them."""
    hosts = build_hosts()
    return World(
        "hosts",
        "A hundred NUMA hosts in four racks and two zones, partly in use",
        hosts,
        build_tenants(hosts),
        prefixed=False,
        remarks=(
            f"A request that nearly fits: roost explain --from-query '{NEARLY_FITS}'",
            "`roost doctor` and `roost audit` find nothing wrong with these hosts.",
        ),
    )


def load_worlds(
    transaction: Transaction, worlds: Sequence[World], show_progress: ShowProgress | None = None
) -> Finished[dict[str, str]]:
    """Load these worlds; returns the uuids of their providers by name.

    A provider has the name that the database knows, such as `sharing/CN1`. It has its drawn name,
    `CN1`, as well, unless several of the worlds draw that name.
    """
    _make_names(transaction, [provider for world in worlds for provider in world.providers])
    uuids: dict[str, str] = {}
    for world in worlds:
        for provider in world.providers:
            uuids[world.full_name(provider.name)] = _load_provider(transaction, world, provider)
            if show_progress is not None:
                show_progress(len(uuids))
    claims = [_claim(world, consumer) for world in worlds for consumer in world.consumers]
    if claims:
        transaction.include(claim_for_several, claims)
    times_drawn = Counter(provider.name for world in worlds for provider in world.providers)
    drawn = {
        provider.name: world.uuid(provider.name)
        for world in worlds
        for provider in world.providers
        if times_drawn[provider.name] == 1
    }
    return transaction.finish(uuids | drawn)


def _load_if_empty(
    transaction: Transaction, worlds: Sequence[World], show_progress: ShowProgress
) -> Finished[DemoSummary]:
    # Every database has this row. A second process waits here until the first commits, and then
    # sees its providers.
    lock_resource_class(transaction, "VCPU")
    if any_exists(transaction.connection):
        return transaction.finish(DemoSummary())
    transaction.include(load_worlds, worlds, show_progress)
    summary = DemoSummary(
        providers=sum(len(world.providers) for world in worlds),
        consumers=sum(len(world.consumers) for world in worlds),
    )
    return transaction.finish(summary)


def _make_names(transaction: Transaction, providers: Iterable[ProviderSpec]) -> None:
    """The custom resource classes and traits that the providers have."""
    classes, traits = set(), set()
    for provider in providers:
        classes |= {inventory.resource_class for inventory in provider.inventories}
        traits |= set(provider.traits)
    for name in sorted(filter(is_custom, classes)):
        transaction.include(ensure_resource_class, name)
    for name in sorted(filter(is_custom, traits)):
        transaction.include(ensure_trait, name)


def _load_provider(transaction: Transaction, world: World, spec: ProviderSpec) -> str:
    uuid = world.uuid(spec.name)
    parent_uuid = None if spec.parent is None else world.uuid(spec.parent)
    created = transaction.include(create_provider, world.full_name(spec.name), uuid, parent_uuid)
    generation = created.generation
    if spec.inventories:
        replaced = transaction.include(
            replace_inventories, uuid, generation, spec.inventories, may_reserve_all=True
        )
        generation = replaced.generation
    if spec.traits:
        changed = transaction.include(replace_provider_traits, uuid, generation, spec.traits)
        generation, _ = changed
    if spec.aggregates:
        aggregates = [world.uuid(aggregate) for aggregate in spec.aggregates]
        transaction.include(replace_aggregates, uuid, aggregates, generation)
    return uuid


def _claim(world: World, consumer: ConsumerSpec) -> Claim:
    return Claim(
        world.uuid(consumer.name),
        {world.uuid(name): resources for name, resources in consumer.allocations.items()},
        consumer.project,
        consumer.user,
        generation=None,
        consumer_type=consumer.consumer_type,
    )


@contextmanager
def _progress(total: int) -> Iterator[ShowProgress]:
    """A bar on the terminal, if there is one; it comes with the first provider."""
    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task("Loading the demo cloud", total=total, visible=False)
    with bar:
        # The count so far and not a step: a transaction that is run again begins anew.
        yield lambda count: bar.update(task, completed=count, visible=True)
