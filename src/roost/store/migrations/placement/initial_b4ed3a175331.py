"""All tables except `consumer_types`."""

from __future__ import annotations

import sqlalchemy as sa

from roost.store.migrations.steps import Steps, key, stamps

revision = "b4ed3a175331"


def upgrade(steps: Steps) -> None:
    """Create the tables."""
    _create_vocabulary(steps)
    _create_providers(steps)
    _create_amounts(steps)
    _create_consumers(steps)


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _member(name: str) -> sa.Column[int]:
    """A column of a primary key of two columns."""
    return sa.Column(name, sa.Integer, primary_key=True, nullable=False, autoincrement=False)


def _create_vocabulary(steps: Steps) -> None:
    for table, name_type in (("resource_classes", sa.String(255)), ("traits", sa.Unicode(255))):
        steps.create_table(
            table,
            *stamps(),
            key(),
            sa.Column("name", name_type, nullable=False),
            sa.UniqueConstraint("name", name=f"uniq_{table}0name"),
        )
    steps.create_table(
        "placement_aggregates",
        *stamps(),
        key(),
        sa.Column("uuid", sa.String(36)),
        sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
    )
    steps.create_index("ix_placement_aggregates_uuid", "placement_aggregates", "uuid")


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
    for column in ("name", "parent_provider_id", "root_provider_id", "uuid"):
        steps.create_index(f"resource_providers_{column}_idx", "resource_providers", column)
    steps.create_table(
        "resource_provider_traits",
        *stamps(),
        _member("trait_id"),
        _member("resource_provider_id"),
        sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["trait_id"], ["traits.id"]),
    )
    steps.create_index(
        "resource_provider_traits_resource_provider_trait_idx",
        "resource_provider_traits",
        "resource_provider_id",
        "trait_id",
    )
    steps.create_table(
        "resource_provider_aggregates",
        *stamps(),
        _member("resource_provider_id"),
        _member("aggregate_id"),
    )
    steps.create_index(
        "resource_provider_aggregates_aggregate_id_idx",
        "resource_provider_aggregates",
        "aggregate_id",
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
    steps.create_index("inventories_resource_class_id_idx", "inventories", "resource_class_id")
    steps.create_index(
        "inventories_resource_provider_id_idx", "inventories", "resource_provider_id"
    )
    steps.create_index(
        "inventories_resource_provider_resource_class_idx",
        "inventories",
        "resource_provider_id",
        "resource_class_id",
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
    steps.create_index(
        "allocations_resource_provider_class_used_idx",
        "allocations",
        "resource_provider_id",
        "resource_class_id",
        "used",
    )
    steps.create_index("allocations_resource_class_id_idx", "allocations", "resource_class_id")
    steps.create_index("allocations_consumer_id_idx", "allocations", "consumer_id")


def _create_consumers(steps: Steps) -> None:
    for table in ("projects", "users"):
        steps.create_table(
            table,
            *stamps(),
            key(),
            sa.Column("external_id", sa.String(255), nullable=False),
            sa.UniqueConstraint("external_id", name=f"uniq_{table}0external_id"),
        )
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
    steps.create_index(
        "consumers_project_id_user_id_uuid_idx", "consumers", "project_id", "user_id", "uuid"
    )
    steps.create_index("consumers_project_id_uuid_idx", "consumers", "project_id", "uuid")
