"""The path below which the service is, if the operator gave it one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OUTSIDE = "roost.outside"
"""The key that marks a request whose path is not below the prefix."""

_SERVED_AT = "roost.served_at"


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
