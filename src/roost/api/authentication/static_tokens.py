"""The strategy `tokens`: bearer tokens from a file, for use without OpenStack's Keystone."""

from __future__ import annotations

import logging
import os
import threading
import time
from hashlib import sha256
from typing import TypeAlias

from roost.api.authentication.refusals import REFUSAL_BODY, IdentityUnavailable, Unauthorized
from roost.api.authentication.tokens_file import StaticToken, check_mode, read_tokens_file
from roost.api.http.requests import Caller, Request
from roost.configuration.settings import ConfigurationError, Settings

_LOG = logging.getLogger(__name__)

_CHALLENGE = 'Bearer realm="roost"'
_BEARER = "bearer "

_Known: TypeAlias = dict[str, tuple[Caller, float]]
"""Callers by the hashes of their tokens, and the seconds since 1970 at which the tokens expire."""


class StaticTokens:
    """Finds the caller of a request by a token of the file.

    A change of the file counts at the next request. At start, a faulty line stops the service.
    Later a faulty line lets no caller in, and the log names it. All good lines hold.
    """

    def __init__(self, settings: Settings) -> None:
        path = settings.tokens_file
        if not path:
            raise ConfigurationError(
                "[api]auth_strategy = tokens needs [roost]tokens_file. Make a file with `roost "
                "token create --file FILE`, and name it there."
            )
        self._path = path
        self._lock = threading.Lock()
        self._fingerprint = self._state_of_file()
        read = read_tokens_file(path)
        if read.faults:
            raise ConfigurationError(" ".join(read.faults))
        warning = check_mode(path)
        if warning:
            _LOG.warning("%s", warning)
        # `None` while the file cannot be used.
        self._known: _Known | None = _by_hash(read.tokens)

    def __call__(self, request: Request) -> Caller:
        """The caller; `Unauthorized` or `IdentityUnavailable` if there is none."""
        token = _token_of(request)
        if not token:
            raise _refusal("This request has no token.", _CHALLENGE)
        self._read_if_changed()
        known = self._known
        if known is None:
            raise IdentityUnavailable(f"the file of tokens {self._path} cannot be used")
        found = known.get(sha256(token.encode()).hexdigest())
        if found is None or time.time() >= found[1]:
            raise _refusal("The token is not valid.", f'{_CHALLENGE}, error="invalid_token"')
        return found[0]

    def _read_if_changed(self) -> None:
        fingerprint = self._state_of_file()
        if fingerprint == self._fingerprint:
            return
        with self._lock:
            if fingerprint == self._fingerprint:
                return
            self._known = self._read()
            self._fingerprint = fingerprint

    def _read(self) -> _Known | None:
        try:
            read = read_tokens_file(self._path)
            warning = check_mode(self._path)
        except (ConfigurationError, OSError) as error:
            _LOG.error("%s Requests are answered with 503.", error)
            return None
        for fault in read.faults:
            _LOG.error("%s Its token is not accepted.", fault)
        if warning:
            _LOG.warning("%s", warning)
        _LOG.info("Read %d tokens from %s", len(read.tokens), self._path)
        return _by_hash(read.tokens)

    def _state_of_file(self) -> object:
        try:
            status = os.stat(self._path)
        except OSError as error:
            return error.errno
        return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def _token_of(request: Request) -> str | None:
    token = request.header("x-auth-token")
    if token:
        return token
    authorization = request.header("authorization") or ""
    if authorization[: len(_BEARER)].lower() != _BEARER:
        return None
    return authorization[len(_BEARER) :].strip()


def _refusal(text: str, challenge: str) -> Unauthorized:
    return Unauthorized(text, challenge=challenge, body=REFUSAL_BODY)


def _by_hash(tokens: tuple[StaticToken, ...]) -> _Known:
    return {
        token.hash: (
            Caller(user=token.user, project=token.project, roles=token.roles),
            token.expires.timestamp() if token.expires is not None else float("inf"),
        )
        for token in tokens
    }
