"""Five indexes go that said the same as a unique constraint."""

from __future__ import annotations

from roost.store.migrations.steps import drop_index

revision = "a082b8bb98d0"
down_revision = "422ece571366"


def upgrade() -> None:
    """Drop them."""
    drop_index("inventories_resource_provider_id_idx", "inventories")
    drop_index("inventories_resource_provider_resource_class_idx", "inventories")
    drop_index("ix_placement_aggregates_uuid", "placement_aggregates")
    drop_index("resource_providers_name_idx", "resource_providers")
    drop_index("resource_providers_uuid_idx", "resource_providers")
