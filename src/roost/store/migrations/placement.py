"""The reference's revisions, with its ids; what each did is in its documentation."""

from __future__ import annotations

import sqlalchemy as sa

from roost.store.connections.errors import REPAIR_COMMAND, DatabaseUnusable
from roost.store.migrations.steps import Revision, Steps, key, stamps

# Index -> its table and columns, in the order of their creation.
_FIRST_INDEXES = {
    "ix_placement_aggregates_uuid": ("placement_aggregates", "uuid"),
    **{
        f"resource_providers_{column}_idx": ("resource_providers", column)
        for column in ("name", "parent_provider_id", "root_provider_id", "uuid")
    },
    "resource_provider_traits_resource_provider_trait_idx": (
        "resource_provider_traits",
        "resource_provider_id",
        "trait_id",
    ),
    "resource_provider_aggregates_aggregate_id_idx": (
        "resource_provider_aggregates",
        "aggregate_id",
    ),
    "inventories_resource_class_id_idx": ("inventories", "resource_class_id"),
    "inventories_resource_provider_id_idx": ("inventories", "resource_provider_id"),
    "inventories_resource_provider_resource_class_idx": (
        "inventories",
        "resource_provider_id",
        "resource_class_id",
    ),
    "allocations_resource_provider_class_used_idx": (
        "allocations",
        "resource_provider_id",
        "resource_class_id",
        "used",
    ),
    "allocations_resource_class_id_idx": ("allocations", "resource_class_id"),
    "allocations_consumer_id_idx": ("allocations", "consumer_id"),
    "consumers_project_id_user_id_uuid_idx": ("consumers", "project_id", "user_id", "uuid"),
    "consumers_project_id_uuid_idx": ("consumers", "project_id", "uuid"),
}
# Each duplicates a unique constraint.
_DUPLICATES = (
    "inventories_resource_provider_id_idx",
    "inventories_resource_provider_resource_class_idx",
    "ix_placement_aggregates_uuid",
    "resource_providers_name_idx",
    "resource_providers_uuid_idx",
)
_TYPE_INDEX = "consumers_consumer_type_id_idx"
_TYPE_KEY = "consumers_consumer_type_id_fkey"


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _member(name: str) -> sa.Column[int]:
    """A column of a primary key of two columns."""
    return sa.Column(name, sa.Integer, primary_key=True, nullable=False, autoincrement=False)


def _create_named(steps: Steps, table: str, name: str, kind: sa.types.TypeEngine[str]) -> None:
    steps.create_table(
        table,
        *stamps(),
        key(),
        sa.Column(name, kind, nullable=False),
        sa.UniqueConstraint(name, name=f"uniq_{table}0{name}"),
    )


def create_tables(steps: Steps) -> None:
    """Create the tables."""
    _create_named(steps, "resource_classes", "name", sa.String(255))
    _create_named(steps, "traits", "name", sa.Unicode(255))
    steps.create_table(
        "placement_aggregates",
        *stamps(),
        key(),
        sa.Column("uuid", sa.String(36)),
        sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
    )
    _create_providers(steps)
    _create_amounts(steps)
    for table in ("projects", "users"):
        _create_named(steps, table, "external_id", sa.String(255))
    steps.create_table(
        "consumers",
        *stamps(),
        key(),
        sa.Column("uuid", sa.String(36), nullable=False),
        _integer("project_id"),
        _integer("user_id"),
        sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    )
    for name, (table, *columns) in _FIRST_INDEXES.items():
        steps.create_index(name, table, *columns)


def _create_providers(steps: Steps) -> None:
    steps.create_table(
        "resource_providers",
        *stamps(),
        key(),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.Unicode(200)),
        sa.Column("generation", sa.Integer),
        sa.Column("root_provider_id", sa.Integer),
        sa.Column("parent_provider_id", sa.Integer),
        # In this order, because MySQL names them by their order.
        sa.ForeignKeyConstraint(["parent_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["root_provider_id"], ["resource_providers.id"]),
        sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
        sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    )
    steps.create_table(
        "resource_provider_traits",
        *stamps(),
        _member("trait_id"),
        _member("resource_provider_id"),
        sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["trait_id"], ["traits.id"]),
    )
    steps.create_table(
        "resource_provider_aggregates",
        *stamps(),
        _member("resource_provider_id"),
        _member("aggregate_id"),
    )


def _create_amounts(steps: Steps) -> None:
    steps.create_table(
        "inventories",
        *stamps(),
        key(),
        _integer("resource_provider_id"),
        _integer("resource_class_id"),
        _integer("total"),
        _integer("reserved"),
        _integer("min_unit"),
        _integer("max_unit"),
        _integer("step_size"),
        sa.Column("allocation_ratio", sa.Float, nullable=False),
        sa.UniqueConstraint(
            "resource_provider_id",
            "resource_class_id",
            name="uniq_inventories0resource_provider_resource_class",
        ),
    )
    steps.create_table(
        "allocations",
        *stamps(),
        key(),
        _integer("resource_provider_id"),
        sa.Column("consumer_id", sa.String(36), nullable=False),
        _integer("resource_class_id"),
        _integer("used"),
    )


def require_roots(steps: Steps) -> None:
    """Count providers without a root."""
    query = "SELECT count(*) FROM resource_providers WHERE root_provider_id IS NULL"
    if count := steps.connection.scalar(sa.text(query)):
        raise DatabaseUnusable(
            f"The schema cannot be upgraded to {ROOTS.id}: {count} resource providers have no "
            f"root_provider_id. Set them with: {REPAIR_COMMAND}"
        )


def require_consumers(steps: Steps) -> None:
    """Count consumers that have allocations but no row."""
    query = (
        "SELECT count(DISTINCT allocations.consumer_id) FROM allocations "
        "LEFT JOIN consumers ON consumers.uuid = allocations.consumer_id "
        "WHERE consumers.id IS NULL"
    )
    if count := steps.connection.scalar(sa.text(query)):
        raise DatabaseUnusable(
            f"The schema cannot be upgraded to {CONSUMERS.id}: {count} consumers have allocations "
            f"but no row in the table consumers. Make the rows with: {REPAIR_COMMAND}"
        )


def create_consumer_types(steps: Steps) -> None:
    """Create `consumer_types` and point to it from `consumers`."""
    _create_named(steps, "consumer_types", "name", sa.Unicode(255))
    # SQLite cannot add a named foreign key to a table: alembic copies the table there.
    with steps.operations.batch_alter_table("consumers") as consumers:
        if "consumer_type_id" not in steps.column_names("consumers"):
            consumers.add_column(sa.Column("consumer_type_id", sa.Integer))
        # The index first: MySQL would make another one for the foreign key.
        if not steps.has_index("consumers", _TYPE_INDEX):
            consumers.create_index(_TYPE_INDEX, ["consumer_type_id"])
        if not steps.has_foreign_key("consumers", _TYPE_KEY):
            consumers.create_foreign_key(_TYPE_KEY, "consumer_types", ["consumer_type_id"], ["id"])


def drop_duplicate_indexes(steps: Steps) -> None:
    """Drop the indexes."""
    for name in _DUPLICATES:
        steps.drop_index(name, _FIRST_INDEXES[name][0])


TABLES = Revision("b4ed3a175331", create_tables)
# These two change nothing. They refuse an upgrade while rows are wrong.
ROOTS = Revision("611cd6dffd7b", require_roots)
CONSUMERS = Revision("b5c396305c25", require_consumers)
TYPES = Revision("422ece571366", create_consumer_types)
DUPLICATE_INDEXES = Revision("a082b8bb98d0", drop_duplicate_indexes)
