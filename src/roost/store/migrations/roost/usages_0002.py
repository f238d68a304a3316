"""Rows of the change journal get the new usages of their provider."""

from __future__ import annotations

import sqlalchemy as sa

from roost.store.migrations.steps import Steps

revision = "roost_0002"


def upgrade(steps: Steps) -> None:
    """Add the column `usages` to `roost_changes`."""
    if "usages" not in steps.column_names("roost_changes"):
        steps.operations.add_column("roost_changes", sa.Column("usages", sa.String(255)))
