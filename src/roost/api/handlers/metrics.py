"""`/metrics`, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import roost
from roost.api.http.errors import HttpError
from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.routing import Route, Success, routes_of
from roost.api.services import Services
from roost.configuration.settings import WatchSettings
from roost.metrics.counting import Labels, MetricKind
from roost.metrics.exposition import CONTENT_TYPE, Family, counted_families, render
from roost.search.capacity.fragmentation import (
    ClassSums,
    all_sums,
    sums_in_aggregate,
    sums_with_trait,
)
from roost.search.forest.forest import Forest

SumsByLabels: TypeAlias = Mapping[Labels, Mapping[str, ClassSums]]


@Route(
    "GET",
    "/metrics",
    rule=None,
    is_probe=True,
    successes={200: Success("The metrics.", media_type=CONTENT_TYPE)},
    refusals={404: "The operator has turned metrics off."},
)
def show_metrics(services: Services, _request: Request) -> Response:
    """The metrics of all workers, in the text format of Prometheus."""
    # A scrape asks no database, so it answers while the database is away.
    if not services.settings.watch.metrics:
        raise HttpError(404)
    headers = [("content-type", CONTENT_TYPE), ("cache-control", "no-store")]
    return Response(200, services.scrapes.text(lambda: _text(services)), headers)


def _text(services: Services) -> bytes:
    watch = services.settings.watch
    services.sample()
    families = [*counted_families(), _build()]
    forest = services.replica.latest
    if forest is not None:
        families += [_providers(forest), *_capacity_families(forest, watch)]
    return render(families)


def _build() -> Family:
    return Family(
        "roost_build_info",
        MetricKind.GAUGE,
        "The version of Roost; the value is 1.",
        ("version",),
        {(roost.__version__,): [1.0]},
    )


def _providers(forest: Forest) -> Family:
    return Family(
        "roost_providers",
        MetricKind.GAUGE,
        "Resource providers in the forest.",
        samples={(): [float(forest.provider_count)]},
    )


def _capacity_families(forest: Forest, watch: WatchSettings) -> Iterator[Family]:
    everything: SumsByLabels = {(): all_sums(forest)}
    yield from _sum_families("roost_resource", "all providers", (), everything)
    if watch.traits:
        by_trait: SumsByLabels = {(name,): sums_with_trait(forest, name) for name in watch.traits}
        yield from _sum_families("roost_trait", "trees with the trait", ("trait",), by_trait)
    if watch.aggregates:
        by_aggregate: SumsByLabels = {
            (uuid,): sums_in_aggregate(forest, uuid) for uuid in watch.aggregates
        }
        yield from _sum_families(
            "roost_aggregate", "trees in the aggregate", ("aggregate",), by_aggregate
        )


def _sum_families(
    prefix: str,
    whose: str,
    labels: tuple[str, ...],
    sums: SumsByLabels,
) -> Iterable[Family]:
    meanings = {
        "capacity": "What consumers of {} can hold: total without reserved, times the ratio.",
        "used": "What consumers of {} hold.",
        "reserved": "What inventories of {} reserve.",
    }
    for field, meaning in meanings.items():
        yield Family(
            f"{prefix}_{field}",
            MetricKind.GAUGE,
            meaning.format(whose),
            (*labels, "resource_class"),
            {
                (*key, name): [float(getattr(found, field))]
                for key, by_class in sums.items()
                for name, found in by_class.items()
            },
        )


ROUTES = routes_of("Operating", show_metrics)
