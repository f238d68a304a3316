"""Who sends a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """The identity that policy decides about."""

    user: str | None = None
    project: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    domain: str | None = None
