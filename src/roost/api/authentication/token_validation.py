"""Tokens: the cache of known ones, and validation by keystonemiddleware as it is configured.

The middleware gets a request that has nothing but the tokens. So no identity that a client claims
in a header reaches it, in any spelling. Its verdict is read from the token, not from headers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import webob
from keystoneauth1 import exceptions as keystone_errors
from keystonemiddleware.auth_token import AuthProtocol, InvalidToken, ServiceError

from roost.api.authentication.refusals import IdentityUnavailable
from roost.api.http.proxy_headers import served_at
from roost.api.http.requests import Caller
from roost.model.text import without_user_info

# A thousand bytes each. Services share a few tokens, and clients keep theirs for an hour.
TOKENS_MAX = 10_000

# Nothing answered, or not in time.
_AWAY = (
    keystone_errors.ConnectionError,
    keystone_errors.DiscoveryFailure,
    keystone_errors.RequestTimeout,
)
_ACCEPTED = "roost.token_accepted"
NO_CACHE = "roost.no_cache"
"""The value of the option `cache` with which the middleware keeps no token."""


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A valid token, and what each request with it must be asked."""

    caller: Caller
    # Seconds since 1970. The token is invalid from then on.
    expires_at: float
    # The part of the token that says which requests it is for; `None` if it is for all.
    restriction: Mapping[str, Any] | None = None


class TokenCache:
    """Keeps a bounded number of valid tokens for some seconds. Invalid ones are not kept.

    A look at the cache takes no lock. The oldest token makes room for a new one.
    """

    def __init__(self, seconds: float, tokens_max: int = TOKENS_MAX) -> None:
        self._seconds = seconds
        self._tokens_max = tokens_max
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[float, KnownToken]] = {}

    @property
    def keeps_tokens(self) -> bool:
        """Whether the operator wants a cache."""
        return self._seconds > 0

    def find(self, key: Hashable) -> KnownToken | None:
        """The token, unless it has expired or was checked too long ago."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        until, token = kept
        # Two clocks: an hour that an administrator sets must not lengthen the life of an entry.
        if time.monotonic() >= until or time.time() >= token.expires_at:
            return None
        return token

    def keep(self, key: Hashable, token: KnownToken) -> None:
        """Keep a token that was found valid now."""
        if not self.keeps_tokens:
            return
        with self._lock:
            self._kept.pop(key, None)
            while len(self._kept) >= self._tokens_max:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = time.monotonic() + self._seconds, token


class TokenValidation:
    """Asks the middleware about tokens. One object serves all threads."""

    def __init__(self, conf: Any, overrides: Mapping[str, Any], account: str) -> None:
        self._account = account
        options = {"oslo_config_config": conf, **overrides}
        if not conf.keystone_authtoken.memcached_servers:
            # The middleware takes this cache from the request, and the cache keeps nothing.
            options["cache"] = NO_CACHE
        self._middleware = _Middleware(_accept, options)

    def validate(
        self, user_token: str, service_token: str | None, environ: Mapping[str, Any]
    ) -> KnownToken | None:
        """The token that Keystone knows; `None` if it is not valid.

        `IdentityUnavailable` says why Keystone cannot be asked.
        """
        asked = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": "/",
            "SERVER_NAME": "roost",
            "SERVER_PORT": "0",
            "wsgi.url_scheme": "http",
            "HTTP_X_AUTH_TOKEN": user_token,
            NO_CACHE: _NoCache(),
            **_negotiated(environ),
        }
        if service_token:
            asked["HTTP_X_SERVICE_TOKEN"] = service_token
        try:
            for _ in self._middleware(asked, _ignore_status):
                pass
        except _Failed as failure:
            raise self._explained(failure.reason) from failure.reason
        except keystone_errors.ClientException as error:
            raise self._explained(error) from error
        return _known_token(asked) if _ACCEPTED in asked else None

    def validate_own(self) -> KnownToken | None:
        """The token of the service account, after a log-in; `None` if Keystone does not know it.

        `IdentityUnavailable` says why the account cannot log in, or cannot look at tokens.
        """
        try:
            token = self._middleware.log_in()
        except keystone_errors.ClientException as error:
            raise self._explained(error) from error
        return self.validate(token, None, {})

    def allows(self, token: KnownToken, environ: Mapping[str, Any], with_service: bool) -> bool:
        """Whether the access rules of an application credential allow this request.

        A client may choose what a proxy announces, so the path is the one that this server got.
        """
        question = SimpleNamespace(
            method=environ["REQUEST_METHOD"],
            path=webob.Request({**environ, "SCRIPT_NAME": served_at(environ)}).path,
            service_token=with_service,
        )
        try:
            self._middleware.check_access_rules(question, token.restriction)
        except InvalidToken:
            return False
        return True

    def _explained(self, reason: BaseException) -> IdentityUnavailable:
        """Why Keystone cannot be asked, in words for the operator's log."""
        if isinstance(reason, _AWAY):
            text = without_user_info(f"Keystone does not answer: {reason}")
            return IdentityUnavailable(text, away=True)
        cause = reason.__context__ if isinstance(reason, ServiceError) else reason
        if isinstance(cause, keystone_errors.Unauthorized):
            return IdentityUnavailable(
                f"Keystone refuses the service account {self._account} of [keystone_authtoken]. "
                "Check its name, password, domain and project, and that it is enabled"
            )
        if isinstance(cause, keystone_errors.Forbidden):
            return IdentityUnavailable(
                f"Keystone does not let the service account {self._account} of "
                "[keystone_authtoken] look at tokens. Give it the role service or admin"
            )
        if isinstance(cause, keystone_errors.EndpointNotFound):
            return IdentityUnavailable(
                "the catalog has no identity endpoint of the interface and the region that "
                f"[keystone_authtoken] names: {cause}"
            )
        return IdentityUnavailable(without_user_info(f"Keystone cannot be used: {cause or reason}"))


class _Failed(Exception):
    """The middleware cannot find out whether a token is valid."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Middleware(AuthProtocol):  # type: ignore[misc]  # its package has no types
    """The middleware, which also tells why it fails, shares its look-ups, and logs in at once.

    Access rules concern a method and a path. So they are no part of a look-up that requests share.
    """

    def log_in(self) -> str:
        """A token of the service account, with the options of all other look-ups."""
        return str(self._auth.get_token(self._session))

    def fetch_token(self, token: str, **options: Any) -> Any:
        try:
            return super().fetch_token(token, **options)
        except webob.exc.HTTPServiceUnavailable as error:
            raise _Failed(error.__context__ or error) from error

    def validate_allowed_request(self, request: Any, token: Any) -> None:
        pass

    def check_access_rules(self, request: Any, token: Any) -> None:
        """Raise `InvalidToken` unless the access rules allow the request."""
        super().validate_allowed_request(request, token)


class _NoCache:
    """A cache that keeps nothing: `TokenCache` does that."""

    def get(self, key: str) -> None:
        pass

    def set(self, key: str, value: Any, time: int = 0) -> None:
        pass


def _accept(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """The application behind the middleware: only requests with valid tokens reach it."""
    environ[_ACCEPTED] = True
    start_response("204 No Content", [])
    return ()


def _ignore_status(status: str, headers: Any, error: Any = None) -> None:
    pass


def _negotiated(environ: Mapping[str, Any]) -> dict[str, Any]:
    """The client as the server in front knows it, for tokens that are bound to a client."""
    return {name: environ[name] for name in ("AUTH_TYPE", "REMOTE_USER") if name in environ}


def _known_token(asked: Mapping[str, Any]) -> KnownToken:
    user, service = asked["keystone.token_auth"].user, asked["keystone.token_auth"].service
    content = asked["keystone.token_info"]["token"]
    return KnownToken(_caller(user, service), _end(user, service), _restriction(content))


def _caller(user: Any, service: Any) -> Caller:
    """The user decides, with the user's own scope, even beside a service token."""
    return Caller(
        user=user.user_id,
        project=user.project_id,
        roles=tuple(user.role_names),
        system_scope="all" if user.system_scoped and user.system.get("all") else None,
        domain=user.domain_id,
        user_domain=user.user_domain_id,
        project_domain=user.project_domain_id,
        attributes=(
            ("is_admin_project", user.is_admin_project),
            ("service_user_id", service and service.user_id),
            ("service_user_domain_id", service and service.user_domain_id),
            ("service_project_id", service and service.project_id),
            ("service_project_domain_id", service and service.project_domain_id),
            ("service_roles", tuple(service.role_names) if service else ()),
        ),
    )


def _end(user: Any, service: Any) -> float:
    """When the verdict ends at the latest.

    The middleware accepts an expired token of a user only because of the service token beside it.
    """
    ends = [user.expires.timestamp()]
    if service is not None:
        if user.will_expire_soon(stale_duration=0):
            ends.clear()
        ends.append(service.expires.timestamp())
    return float(min(ends))


def _restriction(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the middleware reads to check access rules; `None` if there are none."""
    credential = content.get("application_credential") or {}
    rules = credential.get("access_rules")
    if rules is None:
        return None
    types = [{"type": service["type"]} for service in content.get("catalog") or ()]
    return {"application_credential": {"access_rules": rules}, "catalog": types}
