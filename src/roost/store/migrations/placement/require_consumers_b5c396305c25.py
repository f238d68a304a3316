"""Changes nothing. Refuses an upgrade while a consumer with allocations has no row."""

from __future__ import annotations

import sqlalchemy as sa

from roost.store.connections.errors import REPAIR_COMMAND, DatabaseUnusable
from roost.store.migrations.steps import Steps

revision = "b5c396305c25"


def upgrade(steps: Steps) -> None:
    """Count consumers that have allocations but no row."""
    count = steps.connection.scalar(
        sa.text(
            "SELECT count(DISTINCT allocations.consumer_id) FROM allocations "
            "LEFT JOIN consumers ON consumers.uuid = allocations.consumer_id "
            "WHERE consumers.id IS NULL"
        )
    )
    if count:
        raise DatabaseUnusable(
            f"The schema cannot be upgraded to {revision}: {count} consumers have allocations but "
            f"no row in the table consumers. Make the rows with: {REPAIR_COMMAND}"
        )
