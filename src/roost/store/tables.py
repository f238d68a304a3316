"""The tables. The first thirteen are the reference's, column by column; `roost_*` are Roost's.

The migrations under `migrations/` make the tables. Queries are written against this module. Names
of indexes and constraints are part of the contract: Roost can migrate a database of the reference,
and the reference one of Roost.
"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy import Column, Index, Table, UniqueConstraint

from roost.store.dialect import EVER_HIGHER_IDS, LONG_TEXT, WIDE_KEY

metadata = sa.MetaData()


def utc_now() -> datetime:
    """The current time as the tables keep it: in UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def stored_time(value: datetime | str | None) -> datetime | None:
    """A stored time as a driver reads it; SQLite's driver reads a text.

    >>> stored_time("2026-11-15 12:00:00.000000")
    datetime.datetime(2026, 11, 15, 12, 0)
    """
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _stamps() -> tuple[Column[object], Column[object]]:
    """The two columns that every table of the reference begins with."""
    return Column("created_at", sa.DateTime), Column("updated_at", sa.DateTime)


def _names(table: str, column: str, kind: sa.types.TypeEngine[str]) -> Table:
    """A table of names, each of which it has once."""
    return Table(
        table,
        metadata,
        *_stamps(),
        Column("id", sa.Integer, primary_key=True, nullable=False),
        Column(column, kind, nullable=False),
        UniqueConstraint(column, name=f"uniq_{table}0{column}"),
    )


resource_providers = Table(
    "resource_providers",
    metadata,
    *_stamps(),
    Column("id", sa.Integer, primary_key=True, nullable=False),
    Column("uuid", sa.String(36), nullable=False),
    Column("name", sa.Unicode(200)),
    Column("generation", sa.Integer),
    Column("root_provider_id", sa.Integer),
    Column("parent_provider_id", sa.Integer),
    sa.ForeignKeyConstraint(["parent_provider_id"], ["resource_providers.id"]),
    sa.ForeignKeyConstraint(["root_provider_id"], ["resource_providers.id"]),
    UniqueConstraint("name", name="uniq_resource_providers0name"),
    UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    Index("resource_providers_root_provider_id_idx", "root_provider_id"),
    Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
)

inventories = Table(
    "inventories",
    metadata,
    *_stamps(),
    Column("id", sa.Integer, primary_key=True, nullable=False),
    Column("resource_provider_id", sa.Integer, nullable=False),
    Column("resource_class_id", sa.Integer, nullable=False),
    Column("total", sa.Integer, nullable=False),
    Column("reserved", sa.Integer, nullable=False),
    Column("min_unit", sa.Integer, nullable=False),
    Column("max_unit", sa.Integer, nullable=False),
    Column("step_size", sa.Integer, nullable=False),
    Column("allocation_ratio", sa.Float, nullable=False),
    UniqueConstraint(
        "resource_provider_id",
        "resource_class_id",
        name="uniq_inventories0resource_provider_resource_class",
    ),
    Index("inventories_resource_class_id_idx", "resource_class_id"),
)

allocations = Table(
    "allocations",
    metadata,
    *_stamps(),
    Column("id", sa.Integer, primary_key=True, nullable=False),
    Column("resource_provider_id", sa.Integer, nullable=False),
    Column("consumer_id", sa.String(36), nullable=False),
    Column("resource_class_id", sa.Integer, nullable=False),
    Column("used", sa.Integer, nullable=False),
    Index(
        "allocations_resource_provider_class_used_idx",
        "resource_provider_id",
        "resource_class_id",
        "used",
    ),
    Index("allocations_resource_class_id_idx", "resource_class_id"),
    Index("allocations_consumer_id_idx", "consumer_id"),
)

consumer_types = _names("consumer_types", "name", sa.Unicode(255))

consumers = Table(
    "consumers",
    metadata,
    *_stamps(),
    Column("id", sa.Integer, primary_key=True, nullable=False),
    Column("uuid", sa.String(36), nullable=False),
    Column("project_id", sa.Integer, nullable=False),
    Column("user_id", sa.Integer, nullable=False),
    Column("generation", sa.Integer, nullable=False, server_default=sa.text("0")),
    Column("consumer_type_id", sa.Integer),
    sa.ForeignKeyConstraint(
        ["consumer_type_id"], ["consumer_types.id"], name="consumers_consumer_type_id_fkey"
    ),
    UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    Index("consumers_consumer_type_id_idx", "consumer_type_id"),
)

projects = _names("projects", "external_id", sa.String(255))
users = _names("users", "external_id", sa.String(255))

resource_classes = _names("resource_classes", "name", sa.String(255))
traits = _names("traits", "name", sa.Unicode(255))

resource_provider_traits = Table(
    "resource_provider_traits",
    metadata,
    *_stamps(),
    Column("trait_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    Column(
        "resource_provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False
    ),
    sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"]),
    sa.ForeignKeyConstraint(["trait_id"], ["traits.id"]),
    Index(
        "resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"
    ),
)

placement_aggregates = Table(
    "placement_aggregates",
    metadata,
    *_stamps(),
    Column("id", sa.Integer, primary_key=True, nullable=False),
    Column("uuid", sa.String(36)),
    UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
)

resource_provider_aggregates = Table(
    "resource_provider_aggregates",
    metadata,
    *_stamps(),
    Column(
        "resource_provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False
    ),
    Column("aggregate_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
)

roost_changes = Table(
    "roost_changes",
    metadata,
    Column("id", WIDE_KEY, primary_key=True, nullable=False),
    # Rows with the same number belong to one transaction. The default of the column fills it where
    # the database numbers its transactions. Elsewhere writers do, and triggers leave it null.
    Column("transaction_id", sa.BigInteger, server_default=sa.FetchedValue()),
    Column("created_at", sa.DateTime, nullable=False),
    Column("kind", sa.String(16), nullable=False),
    Column("provider_id", sa.Integer),
    Column("provider_uuid", sa.String(36)),
    # After a claim, the new usages of the provider, so that readers need not sum allocations up.
    Column("usages", sa.String(255)),
    # The request, its user and its project, and what the kind does not say: texts of JSON.
    Column("writer", sa.String(640)),
    Column("detail", sa.Text),
    Index("roost_changes_transaction_id_idx", "transaction_id"),
    **EVER_HIGHER_IDS,
)

roost_meta = Table(
    "roost_meta",
    metadata,
    Column("name", sa.String(64), primary_key=True, nullable=False),
    Column("value", sa.String(255), nullable=False),
)

roost_ownership = Table(
    "roost_ownership",
    metadata,
    Column("id", sa.Integer, primary_key=True, nullable=False),
    Column("created_at", sa.DateTime, nullable=False),
    Column("owner", sa.String(100), nullable=False),
    # A row counts as long as a provider has both. Other services delete providers without it.
    Column("provider_id", sa.Integer, nullable=False),
    Column("provider_uuid", sa.String(36), nullable=False),
    # What the owner owns of the provider: a text of JSON.
    Column("content", LONG_TEXT, nullable=False),
    UniqueConstraint("provider_id", "owner", name="uniq_roost_ownership0provider_owner"),
    Index("roost_ownership_owner_idx", "owner"),
)
