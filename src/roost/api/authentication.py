"""Authentication: from a request to its caller, by the configured strategy.

A strategy takes a request and returns the caller, or raises `Unauthorized`. A new strategy is a new
entry in `STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from roost.api.requests import Caller, Request
from roost.configuration.settings import ConfigurationError


class Unauthorized(Exception):
    """The request has no valid credentials."""


Strategy: TypeAlias = Callable[[Request], Caller]


def noauth2(request: Request) -> Caller:
    """Believe the token `user[:project]` and the headers: for tests and single machines."""
    token = request.header("x-auth-token")
    if token is None:
        raise Unauthorized(
            "This request has no X-Auth-Token header; with noauth2, send one "
            "like 'admin' or 'user:project'."
        )
    user, _, project = token.partition(":")
    roles: tuple[str, ...]
    sent_roles = request.header("x-roles")
    if sent_roles is None:
        roles = ("admin",) if user == "admin" else ()
    else:
        roles = tuple(role.strip().lower() for role in sent_roles.split(",") if role.strip())
    system_scope = request.header("openstack-system-scope")
    own_project = None if system_scope else project or user
    sent_project = request.header("x-project-id")
    return Caller(
        user=user,
        project=own_project if sent_project is None else sent_project,
        roles=roles,
        system_scope=system_scope,
        domain=request.header("x-domain-id"),
    )


STRATEGIES: dict[str, Strategy] = {"noauth2": noauth2}


def strategy(name: str | None) -> Strategy:
    """The strategy of this name; `ConfigurationError` if there is none."""
    if name is None:
        raise ConfigurationError(
            "No authentication is configured. Set [api]auth_strategy in placement.conf or "
            "OS_API__AUTH_STRATEGY in the environment; `roost serve` on a loopback address needs "
            "neither."
        )
    if name not in STRATEGIES:
        raise ConfigurationError(
            f"[api]auth_strategy = {name} is not available in this version; "
            f"available: {', '.join(sorted(STRATEGIES))}."
        )
    return STRATEGIES[name]
