"""The tokens that were found valid a short time ago, by their hashes."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from roost.api.requests import Caller

# A thousand bytes each. Services share a few tokens, and clients keep theirs for an hour.
TOKENS_MAX = 10_000


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
