"""Changes nothing. Refuses an upgrade while a provider has no root."""

from __future__ import annotations

import sqlalchemy as sa

from roost.store.connections.errors import REPAIR_COMMAND, DatabaseUnusable
from roost.store.migrations.steps import Steps

revision = "611cd6dffd7b"


def upgrade(steps: Steps) -> None:
    """Count providers without a root."""
    count = steps.connection.scalar(
        sa.text("SELECT count(*) FROM resource_providers WHERE root_provider_id IS NULL")
    )
    if count:
        raise DatabaseUnusable(
            f"The schema cannot be upgraded to {revision}: {count} resource providers have no "
            f"root_provider_id. Set them with: {REPAIR_COMMAND}"
        )
