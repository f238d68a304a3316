"""The headers in which a trusted proxy describes the client's own request."""

from __future__ import annotations

from typing import Any


def apply_proxy_headers(environ: dict[str, Any]) -> None:
    """Take scheme, host, mount point and address from `Forwarded` or `X-Forwarded-*`."""
    found = _forwarded(environ.get("HTTP_FORWARDED", ""))
    scheme = found.get("proto") or _first(environ, "HTTP_X_FORWARDED_PROTO")
    host = found.get("host") or _first(environ, "HTTP_X_FORWARDED_HOST")
    prefix = environ.get("HTTP_X_FORWARDED_PREFIX")
    address = found.get("for") or _first(environ, "HTTP_X_FORWARDED_FOR")
    if scheme:
        environ["wsgi.url_scheme"] = scheme
    if host:
        environ["HTTP_HOST"] = host
    if prefix:
        environ["SCRIPT_NAME"] = prefix.rstrip("/")
    if address:
        environ["REMOTE_ADDR"] = address


def _first(environ: dict[str, Any], name: str) -> str:
    """The client's value, which is the first: each proxy appends its own."""
    value: str = environ.get(name, "")
    return value.split(",", maxsplit=1)[0].strip()


def _forwarded(header: str) -> dict[str, str]:
    """The first element of a `Forwarded` header.

    >>> _forwarded('for=192.0.2.1;proto=https;host="cloud.example", for=10.0.0.1')
    {'for': '192.0.2.1', 'proto': 'https', 'host': 'cloud.example'}
    """
    first = header.split(",", maxsplit=1)[0]
    pairs = (part.partition("=") for part in first.split(";") if "=" in part)
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
