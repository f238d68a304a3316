"""The refusal of requests that ask for more than a limit of `[roost]` allows."""

from __future__ import annotations

from roost.api.errors import HttpError
from roost.api.requests import Request


def check_provider_members(request: Request, count: int, kind: str) -> None:
    """Refuse more aggregates, traits or inventories of a provider than one request may write."""
    _check(count, kind, request.settings.limits.max_provider_members, "max_provider_members")


def check_allocations(request: Request, count: int) -> None:
    """Refuse more allocations than one request may write."""
    _check(count, "allocations", request.settings.limits.max_allocations, "max_allocations")


def _check(count: int, kind: str, maximum: int, option: str) -> None:
    if count > maximum:
        raise HttpError(
            400,
            f"The request has {count} {kind}; {maximum} are allowed ([roost]{option}). Send fewer "
            "in one request, or raise the option.",
        )
