"""The revisions of the tables named `roost_*`."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from roost.store.dialect import EVER_HIGHER_IDS, LONG_TEXT, WIDE_KEY, dialect_of
from roost.store.migrations.steps import Revision, Steps, key


def create_journal(steps: Steps) -> None:
    """Create `roost_changes` and `roost_meta`, and write the epoch."""
    connection = steps.connection
    steps.create_table(
        "roost_changes",
        sa.Column("id", WIDE_KEY, primary_key=True, nullable=False),
        sa.Column(
            "transaction_id",
            sa.BigInteger,
            server_default=dialect_of(connection).transaction_id_default,
        ),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("provider_id", sa.Integer),
        sa.Column("provider_uuid", sa.String(36)),
        **EVER_HIGHER_IDS,
    )
    steps.create_index("roost_changes_transaction_id_idx", "roost_changes", "transaction_id")
    steps.create_table(
        "roost_meta",
        sa.Column("name", sa.String(64), primary_key=True, nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
    )
    # A reader recognises the journal by its epoch.
    meta = sa.table("roost_meta", sa.column("name"), sa.column("value"))
    if connection.scalar(sa.select(meta.c.value).where(meta.c.name == "epoch")) is None:
        connection.execute(meta.insert().values(name="epoch", value=str(uuid.uuid4())))


def add_usages(steps: Steps) -> None:
    """Add the column `usages` to `roost_changes`."""
    if "usages" not in steps.column_names("roost_changes"):
        steps.operations.add_column("roost_changes", sa.Column("usages", sa.String(255)))


def add_origin(steps: Steps) -> None:
    """Add the columns `writer` and `detail` to `roost_changes`."""
    present = steps.column_names("roost_changes")
    for column in (sa.Column("writer", sa.String(640)), sa.Column("detail", sa.Text)):
        if column.name not in present:
            steps.operations.add_column("roost_changes", column)


def create_ownership(steps: Steps) -> None:
    """Create `roost_ownership`: which owner declared which parts of providers."""
    steps.create_table(
        "roost_ownership",
        key(),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("owner", sa.String(100), nullable=False),
        sa.Column("provider_id", sa.Integer, nullable=False),
        sa.Column("provider_uuid", sa.String(36), nullable=False),
        sa.Column("content", LONG_TEXT, nullable=False),
        sa.UniqueConstraint("provider_id", "owner", name="uniq_roost_ownership0provider_owner"),
    )
    steps.create_index("roost_ownership_owner_idx", "roost_ownership", "owner")


JOURNAL = Revision("roost_0001", create_journal)
USAGES = Revision("roost_0002", add_usages)
ORIGIN = Revision("roost_0003", add_origin)
OWNERSHIP = Revision("roost_0004", create_ownership)
