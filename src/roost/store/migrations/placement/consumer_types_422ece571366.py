"""Consumers get a type."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roost.store.migrations.steps import (
    column_names,
    create_table,
    has_foreign_key,
    has_index,
    key,
    stamps,
)

revision = "422ece571366"
down_revision = "b5c396305c25"

_INDEX = "consumers_consumer_type_id_idx"
_FOREIGN_KEY = "consumers_consumer_type_id_fkey"


def upgrade() -> None:
    """Create `consumer_types` and point to it from `consumers`."""
    create_table(
        "consumer_types",
        *stamps(),
        key(),
        sa.Column("name", sa.Unicode(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    # SQLite cannot add a named foreign key to a table: there, the table is made anew.
    with op.batch_alter_table("consumers") as consumers:
        if "consumer_type_id" not in column_names("consumers"):
            consumers.add_column(sa.Column("consumer_type_id", sa.Integer))
        # The index first: MySQL would make one of its own for the foreign key.
        if not has_index("consumers", _INDEX):
            consumers.create_index(_INDEX, ["consumer_type_id"])
        if not has_foreign_key("consumers", _FOREIGN_KEY):
            consumers.create_foreign_key(
                _FOREIGN_KEY, "consumer_types", ["consumer_type_id"], ["id"]
            )
