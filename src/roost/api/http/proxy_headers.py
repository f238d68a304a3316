"""How a client reached the service: through trusted proxies, below a path, by a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from roost.configuration.limit_log import LIMIT_LOG
from roost.model.proxies import TrustedProxies, address_of

# Each of them has a counterpart in `Forwarded`.
_FAMILY = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST")
_KEYS = ("HTTP_FORWARDED", *_FAMILY, "HTTP_X_FORWARDED_PREFIX")
# Proxies write a hundred bytes or so. Only clients write more.
_CHARACTERS_MAX = 8192
_SCHEMES = frozenset({"http", "https"})
# Two slashes at the beginning would be the address of another server.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,=:@-]+)+/?\Z")
# A part of an element of `Forwarded`: a name and a value, which may stand in quotes.
_PAIR = re.compile(r'\s*([A-Za-z]+)=(?:"([^"\\]*)"|([^",;\s]*))\s*\Z')

Element = dict[str, str]

OUTSIDE = "roost.outside"
"""The key that marks a request whose path is not below the prefix."""

_SERVED_AT = "roost.served_at"

# Names with underscores are usual in networks of containers. A zone may follow an address of IPv6.
_NAME = r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
_ADDRESS = r"\[(?:[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~-]+)?|v[0-9A-Fa-f]+\.[A-Za-z0-9._~:-]+)\]"
# A client that knows no host sends an empty header.
_IS_HOST = re.compile(rf"(?:(?:{_NAME}|{_ADDRESS})(?::[0-9]*)?)?").fullmatch


def apply_proxy_headers(environ: dict[str, Any], trusted: TrustedProxies) -> None:
    """Take scheme, host, mount point and address from `Forwarded` or `X-Forwarded-*`.

    Only the headers of trusted proxies count. Values that make no sense are left out.
    """
    if not any(key in environ for key in _KEYS):
        return
    peer: str = environ.get("REMOTE_ADDR", "")
    if not trusted.trust_peer(peer):
        _ignore(environ, peer)
        return
    elements = _elements(environ)
    described = elements[_described(elements, trusted)] if elements else {}
    scheme = described.get("proto", "").lower()
    host = described.get("host", "")
    prefix = _header(environ, "HTTP_X_FORWARDED_PREFIX").rpartition(",")[2].strip()
    address = address_of(described.get("for", ""))
    if scheme in _SCHEMES:
        environ["wsgi.url_scheme"] = scheme
    if host and is_host(host):
        environ["HTTP_HOST"] = host
    if _PREFIX.match(prefix):
        announce_mount(environ, prefix.rstrip("/"))
    if address is not None:
        environ["REMOTE_ADDR"] = str(address)


def _ignore(environ: dict[str, Any], peer: str) -> None:
    """Remove the headers, so that nothing behind believes them."""
    for key in _KEYS:
        environ.pop(key, None)
    LIMIT_LOG.warn(
        "trusted_proxies",
        "Forwarded or X-Forwarded-* of this client does not count. If it is a proxy, add its "
        "address to [roost]trusted_proxies.",
        peer,
    )


def _elements(environ: dict[str, Any]) -> list[Element]:
    """What each proxy said, the nearest proxy last.

    A proxy that writes `X-Forwarded-*` lets the client's `Forwarded` pass. So it counts only alone.
    """
    if not any(key in environ for key in _FAMILY):
        return [_element(text) for text in _split_list(_header(environ, "HTTP_FORWARDED"))]
    addresses = _split_list(_header(environ, "HTTP_X_FORWARDED_FOR"))
    count = max(1, len(addresses))
    elements: list[Element] = [{"for": address} for address in addresses] or [{}]
    for name, key in (("proto", "HTTP_X_FORWARDED_PROTO"), ("host", "HTTP_X_FORWARDED_HOST")):
        values = _split_list(_header(environ, key))
        if not values:
            continue
        # A proxy that replaces the header says one value. It holds for the whole way.
        aligned = values if len(values) == count else values[-1:] * count
        for element, value in zip(elements, aligned, strict=True):
            element[name] = value
    return elements


def _header(environ: dict[str, Any], key: str) -> str:
    """The value of a header; nothing if it is longer than any proxy writes."""
    value: str = environ.get(key, "")
    return value if len(value) <= _CHARACTERS_MAX else ""


def _described(elements: list[Element], trusted: TrustedProxies) -> int:
    """Which element describes the client: the first one that trusted proxies vouch for."""
    for index in range(len(elements) - 1, 0, -1):
        address = address_of(elements[index].get("for", ""))
        if address is None or not trusted.trust(address):
            return index
    return 0


def _split_list(header: str) -> list[str]:
    """The members of a list.

    >>> _split_list('for="a,b", for=c,')
    ['for="a,b"', 'for=c']
    """
    members: list[str] = []
    start = 0
    quoted = False
    for index, character in enumerate(header):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            members.append(header[start:index])
            start = index + 1
    members.append(header[start:])
    return [member.strip() for member in members if member.strip()]


def _element(text: str) -> Element:
    """An element of `Forwarded`; parts that make no sense are left out.

    >>> _element('for="[2001:db8::1]:47";proto=https;host=cloud.example;;=')
    {'for': '[2001:db8::1]:47', 'proto': 'https', 'host': 'cloud.example'}
    """
    pairs = filter(None, map(_PAIR.match, text.split(";")))
    return {pair[1].lower(): pair[2] if pair[2] is not None else pair[3] for pair in pairs}


# The path below which the service is, if the operator gave it one.


def mount(environ: dict[str, Any], prefix: str) -> None:
    """Move the prefix from the path to the mount point, or mark the request.

    Some servers move the prefix themselves. Then nothing is left to do.

    >>> below = {"PATH_INFO": "/placement/traits"}
    >>> mount(below, "/placement")
    >>> mount(below, "/placement")
    >>> below
    {'PATH_INFO': '/traits', 'SCRIPT_NAME': '/placement'}
    """
    mounted: str = environ.get("SCRIPT_NAME", "")
    if mounted.endswith(prefix):
        return
    path: str = environ.get("PATH_INFO", "")
    if path != prefix and not path.startswith(prefix + "/"):
        environ[OUTSIDE] = True
        return
    environ["SCRIPT_NAME"] = mounted + prefix
    environ["PATH_INFO"] = path[len(prefix) :]


def announce_mount(environ: dict[str, Any], announced: str) -> None:
    """Let links begin with the mount point that a proxy announces.

    >>> behind_proxy = {"SCRIPT_NAME": "/placement", "PATH_INFO": "/traits"}
    >>> announce_mount(behind_proxy, "/cloud")
    >>> behind_proxy["SCRIPT_NAME"], served_at(behind_proxy)
    ('/cloud', '/placement')
    """
    environ.setdefault(_SERVED_AT, environ.get("SCRIPT_NAME", ""))
    environ["SCRIPT_NAME"] = announced


def served_at(environ: Mapping[str, Any]) -> str:
    """The mount point at which this server got the request, whatever a header announces."""
    at: str = environ.get(_SERVED_AT, environ.get("SCRIPT_NAME", ""))
    return at


# The host of a request, as its client or a proxy names it. It becomes a part of links.


# A service has few hosts, and every request names one. A header has 64 KiB at most.
@lru_cache(maxsize=16)
def is_host(text: str) -> bool:
    """Whether the text is a host with an optional port, as RFC 3986 writes it.

    >>> is_host("cloud.example:8778"), is_host("[2001:db8::1]"), is_host('evil"><script>')
    (True, True, False)
    """
    return _IS_HOST(text) is not None
