"""No change; refuses to go on while a provider does not say which tree it belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roost.store.errors import DatabaseUnusable
from roost.store.schema_repair import REPAIR_COMMAND

revision = "611cd6dffd7b"
down_revision = "b4ed3a175331"


def upgrade() -> None:
    """Count providers without a root."""
    count = op.get_bind().scalar(
        sa.text("SELECT count(*) FROM resource_providers WHERE root_provider_id IS NULL")
    )
    if count:
        raise DatabaseUnusable(
            f"The schema cannot be upgraded to {revision}: {count} resource providers have no "
            f"root_provider_id. Set them with: {REPAIR_COMMAND}"
        )
