"""Drops five indexes that duplicate a unique constraint."""

from __future__ import annotations

from roost.store.migrations.steps import Steps

revision = "a082b8bb98d0"


def upgrade(steps: Steps) -> None:
    """Drop the indexes."""
    steps.drop_index("inventories_resource_provider_id_idx", "inventories")
    steps.drop_index("inventories_resource_provider_resource_class_idx", "inventories")
    steps.drop_index("ix_placement_aggregates_uuid", "placement_aggregates")
    steps.drop_index("resource_providers_name_idx", "resource_providers")
    steps.drop_index("resource_providers_uuid_idx", "resource_providers")
