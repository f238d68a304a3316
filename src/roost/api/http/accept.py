"""The `accept` header: the media types that a client wants."""

from __future__ import annotations

import re

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RANGE = re.compile(rf"\s*({_TOKEN})/({_TOKEN})\s*((?:;[^,]*)?)\Z")
_QUALITY = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|\Z)", re.IGNORECASE)


def quality(accept: str | None, media_type: str) -> float:
    """The quality of a media type in the header, from 0 (refused) to 1.

    The most specific entry decides. Without a header, or with a malformed one, it is 1.

    >>> quality("text/*;q=0.5, application/json", "text/html")
    0.5
    >>> quality("text/plain", "application/json")
    0.0
    """
    if not accept or not accept.strip():
        return 1.0
    wanted_type, wanted_subtype = media_type.split("/")
    best = (-1, 0.0)
    for entry in accept.lower().split(","):
        if not entry.strip():
            continue
        match = _RANGE.match(entry)
        if match is None:
            return 1.0
        type_, subtype, parameters = match.groups()
        if type_ not in ("*", wanted_type) or subtype not in ("*", wanted_subtype):
            continue
        specificity = (type_ != "*") + (subtype != "*")
        found = _QUALITY.search(parameters)
        value = float(found[1]) if found else 1.0
        best = max(best, (specificity, value))
    return best[1]


def error_media_type(accept: str | None) -> str:
    """The media type in which the client wants errors.

    >>> error_media_type("*/*"), error_media_type("text/html"), error_media_type("image/png")
    ('application/json', 'text/html', 'text/plain')
    """
    if not accept or accept.strip() == "*/*":
        return "application/json"
    html, json = quality(accept, "text/html"), quality(accept, "application/json")
    if html and html >= json:
        return "text/html"
    return "application/json" if json else "text/plain"
