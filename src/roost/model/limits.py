"""The limits of one request: large enough for every real client, small enough to stay serving."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for; the names and meanings of the options of `[roost]`."""

    # The bytes of a request's body.
    max_body_bytes: int = 16 * 1024 * 1024
