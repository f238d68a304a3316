"""Consumers get a type."""

from __future__ import annotations

import sqlalchemy as sa

from roost.store.migrations.steps import Steps, key, stamps

revision = "422ece571366"

_INDEX = "consumers_consumer_type_id_idx"
_FOREIGN_KEY = "consumers_consumer_type_id_fkey"


def upgrade(steps: Steps) -> None:
    """Create `consumer_types` and point to it from `consumers`."""
    steps.create_table(
        "consumer_types",
        *stamps(),
        key(),
        sa.Column("name", sa.Unicode(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    # SQLite cannot add a named foreign key to a table: alembic copies the table there.
    with steps.operations.batch_alter_table("consumers") as consumers:
        if "consumer_type_id" not in steps.column_names("consumers"):
            consumers.add_column(sa.Column("consumer_type_id", sa.Integer))
        # The index first: MySQL would make another one for the foreign key.
        if not steps.has_index("consumers", _INDEX):
            consumers.create_index(_INDEX, ["consumer_type_id"])
        if not steps.has_foreign_key("consumers", _FOREIGN_KEY):
            consumers.create_foreign_key(
                _FOREIGN_KEY, "consumer_types", ["consumer_type_id"], ["id"]
            )
