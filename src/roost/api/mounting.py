"""The path below which the service is, if the operator gave it one."""

from __future__ import annotations

from typing import Any

OUTSIDE = "roost.outside"
"""The key that marks a request whose path is not below the prefix."""


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
