"""The time that rows carry."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, in UTC and without a zone, as the tables keep it."""
    return datetime.now(UTC).replace(tzinfo=None)
