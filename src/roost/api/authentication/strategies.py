"""The strategies by name. A new strategy is a new entry in `STRATEGIES`.

The settings make a strategy when the service starts, so a configuration that cannot work stops the
start. A strategy takes a request and returns its caller. It raises `Unauthorized` for wrong
credentials, and `IdentityUnavailable` if it cannot check them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from roost.api.authentication.refusals import Unauthorized
from roost.api.authentication.static_tokens import StaticTokens
from roost.api.http.requests import Caller, Request
from roost.configuration.settings import ConfigurationError, Settings

_KEPT_LENGTH_MAX = 1000


def noauth2(request: Request) -> Caller:
    """The caller that the token `user[:project]` and the headers name."""
    sent = request.environ.get
    token = sent("HTTP_X_AUTH_TOKEN")
    if token is None:
        raise Unauthorized(
            "This request has no X-Auth-Token header; with noauth2, send one "
            "like 'admin' or 'user:project'."
        )
    roles = sent("HTTP_X_ROLES")
    # Headers may have 64 KiB. Long ones are not worth the memory.
    named = _named_caller if len(token) + len(roles or "") > _KEPT_LENGTH_MAX else _kept_caller
    return named(
        token,
        roles,
        sent("HTTP_OPENSTACK_SYSTEM_SCOPE"),
        sent("HTTP_X_PROJECT_ID"),
        sent("HTTP_X_DOMAIN_ID"),
    )


def _named_caller(
    token: str, sent_roles: str | None, scope: str | None, project: str | None, domain: str | None
) -> Caller:
    user, _, own_project = token.partition(":")
    roles: tuple[str, ...]
    if sent_roles is None:
        roles = ("admin",) if user == "admin" else ()
    else:
        roles = tuple(role.strip().lower() for role in sent_roles.split(",") if role.strip())
    if project is None and not scope:
        project = own_project or user
    return Caller(user=user, project=project, roles=roles, system_scope=scope, domain=domain)


_kept_caller = lru_cache(maxsize=64)(_named_caller)


Strategy: TypeAlias = Callable[[Request], Caller]


def _keystone(settings: Settings) -> Strategy:
    try:
        # The package is an extra, and its import takes 0.4 seconds.
        from roost.api.authentication.keystone import Keystone  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "roost":
            raise
        raise ConfigurationError(
            f"[api]auth_strategy = keystone needs keystonemiddleware, and {error.name} is not "
            "installed. Install it with: pip install 'roost[keystone]'"
        ) from None
    return Keystone(settings)


STRATEGIES: dict[str, Callable[[Settings], Strategy]] = {
    "keystone": _keystone,
    "noauth2": lambda _: noauth2,
    "tokens": StaticTokens,
}


def make_strategy(settings: Settings) -> Strategy:
    """The configured strategy; `ConfigurationError` if there is none, or if it cannot work."""
    name = settings.auth_strategy
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
    return STRATEGIES[name](settings)


def check_strategy(settings: Settings) -> None:
    """Raise `ConfigurationError` if the configured strategy cannot work."""
    make_strategy(settings)
