"""Why a request has no caller: wrong credentials, or no means to check them."""

from __future__ import annotations

import json

REFUSAL_BODY = json.dumps(
    {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }
).encode()
"""The body of a 401 in the form of OpenStack's services, which clients know."""


class Unauthorized(Exception):
    """The request has no valid credentials.

    `challenge` is the `WWW-Authenticate` header. `body` replaces the usual body of an error.
    """

    def __init__(
        self, text: str, *, challenge: str | None = None, body: bytes | None = None
    ) -> None:
        super().__init__(text)
        self.challenge = challenge
        self.body = body


class IdentityUnavailable(Exception):
    """The credentials cannot be checked at the moment. The text says why.

    `away` means that nothing answered, so the next check will most likely fail, too.
    """

    def __init__(self, text: str, *, away: bool = False) -> None:
        super().__init__(text)
        self.away = away
