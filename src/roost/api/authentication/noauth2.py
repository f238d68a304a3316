"""The strategy `noauth2`, which believes the token: for tests and single machines."""

from __future__ import annotations

from roost.api.authentication.refusals import Unauthorized
from roost.api.requests import Caller, Request


def noauth2(request: Request) -> Caller:
    """The caller that the token `user[:project]` and the headers name."""
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
