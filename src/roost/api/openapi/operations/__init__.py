"""A description of each route, by its method and path.

A route that ends before the newest version has ` until ` and its last version in its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roost.api.microversions import MAX_VERSION
from roost.api.openapi.operation import Operation
from roost.api.openapi.operations import (
    allocations,
    associations,
    candidates,
    inventories,
    operating,
    providers,
    questions,
    resource_classes,
)

if TYPE_CHECKING:
    from roost.api.routes import Route

OPERATIONS: Mapping[str, Operation] = {
    **operating.OPERATIONS,
    **resource_classes.OPERATIONS,
    **providers.OPERATIONS,
    **inventories.OPERATIONS,
    **associations.OPERATIONS,
    **allocations.OPERATIONS,
    **candidates.OPERATIONS,
    **questions.OPERATIONS,
}


def operation_key(route: Route) -> str:
    """The key of the description of a route."""
    end = "" if route.until == MAX_VERSION else f" until {route.until}"
    return f"{route.method} {route.path or '/'}{end}"


def operation_of(route: Route) -> Operation:
    """The description of a route."""
    return OPERATIONS[operation_key(route)]
