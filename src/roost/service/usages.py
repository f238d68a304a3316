"""What projects and users consume."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection

from roost.model.consumers import TypeUsage
from roost.store import usages


def list_usages(connection: Connection, project: str, user: str | None) -> Mapping[str, int]:
    """How much of each class the project, or one user in it, holds."""
    return usages.project_usages(connection, project, user)


def list_usages_by_type(
    connection: Connection, project: str, user: str | None, consumer_type: str | None
) -> list[TypeUsage]:
    """The same by consumer type: for each, for one, for `unknown`, or for `all` together."""
    return usages.project_usages_by_type(connection, project, user, consumer_type)
