"""The strategy `keystone`: tokens of OpenStack's identity service.

A token that was found valid a short time ago costs a few microseconds. The middleware would need
300 to 550 for each request, more than a search.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from functools import cache
from hashlib import sha256
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from roost.api.authentication.keystone_checks import authenticate_uri, cache_seconds, check_keystone
from roost.api.authentication.look_ups import LookUps
from roost.api.authentication.refusals import REFUSAL_BODY, Unauthorized
from roost.api.authentication.token_validation import KnownToken, TokenCache, TokenValidation
from roost.api.http.requests import Caller, Request
from roost.api.observation.request_log import NO_REQUEST, LogContext
from roost.configuration.settings import Settings
from roost.model.proxies import address_of

_LOG = logging.getLogger(__name__)

# Servers refuse longer headers, so Keystone has no longer tokens.
_TOKEN_CHARACTERS_MAX = 8190


class Keystone:
    """Finds the caller of a request by its tokens."""

    def __init__(self, settings: Settings) -> None:
        conf = settings.oslo
        account = check_keystone(conf)
        here, in_memcached = cache_seconds(conf)
        uri = authenticate_uri(conf)
        if not conf.keystone_authtoken.www_authenticate_uri:
            _warn_about_uri(uri)
        self._challenge = f'Keystone uri="{uri}"'
        # With a delayed decision, a refusal has the usual form of an error.
        self._refusal_body = None if conf.keystone_authtoken.delay_auth_decision else REFUSAL_BODY
        self._cache = TokenCache(here)
        self._look_ups: LookUps[KnownToken | None] = LookUps(
            "Keystone", settings.keystone_wait_seconds
        )
        self._validation = TokenValidation(
            conf,
            {
                "token_cache_time": in_memcached,
                "www_authenticate_uri": uri,
                "delay_auth_decision": False,
            },
            account,
        )

    def __call__(self, request: Request) -> Caller:
        """The caller; `Unauthorized` or `IdentityUnavailable` if there is none."""
        environ = request.environ
        token: str | None = environ.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            # The name that old clients use.
            token = environ.get("HTTP_X_STORAGE_TOKEN")
        if not token:
            raise self._refusal("This request has no X-Auth-Token header.")
        service_token: str | None = environ.get("HTTP_X_SERVICE_TOKEN")
        key = (
            sha256(token.encode()).digest(),
            sha256(service_token.encode()).digest() if service_token else None,
            environ.get("REMOTE_USER"),
            environ.get("AUTH_TYPE"),
        )
        known = self._cache.find(key)
        if known is None:
            known = self._look_up(key, token, service_token, request)
        if known.restriction is not None and not self._validation.allows(
            known, environ, bool(service_token)
        ):
            raise self._refusal("The access rules of the credential do not allow this request.")
        return known.caller

    def _look_up(
        self, key: Hashable, token: str, service_token: str | None, request: Request
    ) -> KnownToken:
        """The token as Keystone knows it."""
        if not _may_be_token(token) or (service_token and not _may_be_token(service_token)):
            raise self._refusal("The token is not valid.")

        def ask() -> KnownToken | None:
            LogContext(request).update_store()
            try:
                found = self._validation.validate(token, service_token, request.environ)
            finally:
                NO_REQUEST.update_store()
            if found is not None:
                self._cache.keep(key, found)
            return found

        # Without a cache, each request asks for itself, so that a revocation counts at once.
        shared_key: Any = key if self._cache.keeps_tokens else object()
        known = self._look_ups.find(shared_key, ask, _origin(request))
        if known is None:
            raise self._refusal("The token is not valid.")
        return known

    def _refusal(self, text: str) -> Unauthorized:
        return Unauthorized(text, challenge=self._challenge, body=self._refusal_body)


@cache
def _warn_about_uri(uri: str) -> None:
    """Log once, in the process that forks the workers, where clients without a token are sent."""
    _LOG.warning(
        "www_authenticate_uri in [keystone_authtoken] is not set, so clients without a token are "
        "sent to %s. Set it to the public address of Keystone.",
        uri,
    )


def _origin(request: Request) -> str:
    """The client whose requests share places. One client of IPv6 has a whole network of 64 bits."""
    peer: str = request.environ.get("REMOTE_ADDR", "")
    address = address_of(peer)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, 64), strict=False))
    return peer if address is None else str(address)


def _may_be_token(text: str) -> bool:
    """Whether Keystone need be asked. A token is a printable text of bounded length.

    >>> _may_be_token("gAAAAABl"), _may_be_token("a\\tb"), _may_be_token("x" * 9000)
    (True, False, False)
    """
    return len(text) <= _TOKEN_CHARACTERS_MAX and text.isascii() and text.isprintable()
