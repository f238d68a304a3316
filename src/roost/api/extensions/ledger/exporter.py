"""`GET /roost/exporter`: all inventories, under the names that existing dashboards use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from roost.api.extensions.parameters import refuse_rest, split_parameters
from roost.api.extensions.questions.question_turn import enter_if_large, question_turn
from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.http.streamed_lists import AT_ONCE_MAX
from roost.api.routing import Route, Success, routes_of
from roost.api.services import Services
from roost.metrics.exposition import CONTENT_TYPE, number, quoted
from roost.search.forest.block import Block, InventoryColumns
from roost.search.forest.forest import Forest


class _ExportedColumn(NamedTuple):
    """A metric with a sample for each inventory."""

    name: str
    meaning: str
    values: Callable[[InventoryColumns], list[Any]]


_COLUMNS = (
    _ExportedColumn("total", "What an inventory has in total.", lambda its: its.total.tolist()),
    _ExportedColumn(
        "reserved", "What of an inventory no consumer gets.", lambda its: its.reserved.tolist()
    ),
    _ExportedColumn("usage", "What consumers hold.", lambda its: its.used.tolist()),
    _ExportedColumn(
        "allocation_ratio",
        "How many times consumers may take what is not reserved.",
        lambda its: list(map(number, its.allocation_ratio.tolist())),
    ),
)


@Route(
    "GET",
    "/roost/exporter",
    rule="roost:exporter:show",
    summary="Show the inventories of all providers as metrics",
    successes={200: Success("The metrics.", media_type=CONTENT_TYPE)},
    refusals={400: "The route takes no parameters."},
)
def show_exporter(services: Services, request: Request) -> Response:
    """Total, reserved, usage and allocation ratio of each inventory, for Prometheus.

    The text has the names of the OpenStack exporter: `hostname` is the name of the provider, and
    `resourcetype` the resource class.
    """
    refuse_rest(split_parameters(request, ()), ())
    forest = services.forest()
    headers = [("content-type", CONTENT_TYPE), ("cache-control", "no-store")]
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        turn.pause()
        if forest.provider_count <= AT_ONCE_MAX:
            return Response(200, b"".join(_pieces(forest)), headers)
    return Response(200, headers=headers, stream=turn.pieces(_pieces(forest)))


def _pieces(forest: Forest) -> Iterator[bytes]:
    """The text: metric by metric, as Prometheus wants it, and block by block within a metric."""
    class_names = forest.vocabulary.class_names
    for exported in _COLUMNS:
        name = f"openstack_placement_resource_{exported.name}"
        yield f"# HELP {name} {exported.meaning}\n# TYPE {name} gauge\n".encode()
        for block in forest.blocks:
            hosts = _hosts(block)
            for class_id, inventory in block.inventories.items():
                middle = f'",resourcetype="{class_names.get(class_id, class_id)}"}} '
                lines = [
                    f'{name}{{hostname="{hosts[index]}{middle}{value}\n'
                    for index, value in zip(
                        inventory.indexes.tolist(), exported.values(inventory), strict=True
                    )
                ]
                yield "".join(lines).encode()


def _hosts(block: Block) -> list[str]:
    """The names of the providers, as values of a label."""
    names = block.names.texts(range(len(block)))
    if any(character in block.names.packed for character in (b"\\", b'"', b"\n")):
        return list(map(quoted, names))
    return names


ROUTES = routes_of("Operating", show_exporter)
