"""No change; refuses to go on while an allocation belongs to a consumer that has no row."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roost.store.errors import DatabaseUnusable
from roost.store.schema_repair import REPAIR_COMMAND

revision = "b5c396305c25"
down_revision = "611cd6dffd7b"


def upgrade() -> None:
    """Count consumers that only allocations know."""
    count = op.get_bind().scalar(
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
