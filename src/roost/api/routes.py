"""The route table: the declarations of all modules that have handlers."""

from __future__ import annotations

from roost.api.candidates import handler as candidates
from roost.api.extensions import server
from roost.api.extensions.changes import handler as changes
from roost.api.extensions.changes import past as past_changes
from roost.api.extensions.ledger import (
    adoption,
    audit,
    consumers,
    exporter,
    tree_declaration,
    trees,
)
from roost.api.extensions.openapi import document_route
from roost.api.extensions.questions import candidates as extended_candidates
from roost.api.extensions.questions import (
    capacity,
    explain,
    fragmentation,
    overview,
    resilience,
    whatif,
)
from roost.api.handlers import (
    aggregates,
    allocations,
    health,
    inventories,
    metrics,
    providers,
    resource_classes,
    root,
    traits,
    usages,
    web_pages,
)
from roost.api.routing import Route

# The order within a path is the order of its `allow` header.
ROUTES: tuple[Route, ...] = (
    *root.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
    *web_pages.ROUTES,
    *resource_classes.ROUTES,
    *providers.ROUTES,
    *inventories.ROUTES,
    *aggregates.ROUTES,
    *traits.ROUTES,
    *allocations.ROUTES,
    *candidates.ROUTES,
    *usages.ROUTES,
    *resilience.ROUTES,
    *server.ROUTES,
    document_route(lambda: ROUTES),
    *explain.ROUTES,
    *capacity.ROUTES,
    *fragmentation.ROUTES,
    *overview.ROUTES,
    *exporter.ROUTES,
    *whatif.ROUTES,
    *extended_candidates.ROUTES,
    *consumers.ROUTES,
    *audit.ROUTES,
    *adoption.ROUTES,
    *trees.ROUTES,
    *tree_declaration.ROUTES,
    *changes.ROUTES,
    *past_changes.ROUTES,
)
