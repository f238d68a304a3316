"""The host of a request, as its client or a proxy names it. It becomes a part of links."""

from __future__ import annotations

import re

# Names with underscores are usual in networks of containers. A zone may follow an address of IPv6.
_NAME = r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
_ADDRESS = r"\[(?:[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~-]+)?|v[0-9A-Fa-f]+\.[A-Za-z0-9._~:-]+)\]"
# A client that knows no host sends an empty header.
_IS_HOST = re.compile(rf"(?:(?:{_NAME}|{_ADDRESS})(?::[0-9]*)?)?").fullmatch


def is_host(text: str) -> bool:
    """Whether the text is a host with an optional port, as RFC 3986 writes it.

    >>> is_host("cloud.example:8778"), is_host("[2001:db8::1]"), is_host('evil"><script>')
    (True, True, False)
    """
    return _IS_HOST(text) is not None
