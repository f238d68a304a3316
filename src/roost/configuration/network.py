"""The options of `[roost]` about the network: TLS, proxies, the path of the service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from roost.model.errors import ConfigurationError
from roost.model.proxies import UNIX, TrustedProxies

# A path as it stands in a URL, without a slash at its end.
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+\Z")

NETWORK = (
    cfg.StrOpt("tls_cert", help="File of the certificate; `roost serve` then speaks HTTPS."),
    cfg.StrOpt("tls_key", help="File of its key. Default: the file of the certificate."),
    cfg.StrOpt("tls_client_ca", help="Clients need a certificate of the authority in this file."),
    cfg.StrOpt("prefix", default="", help="The path below which the service is: /placement."),
    cfg.ListOpt(
        "trusted_proxies",
        default=["127.0.0.0/8", "::1", UNIX],
        help="Addresses and networks of proxies whose X-Forwarded-* and Forwarded are believed; "
        "`unix`: those behind a unix socket.",
    ),
)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What the network sees of the service."""

    tls_cert: str | None
    tls_key: str | None
    tls_client_ca: str | None
    # Empty, or a path without a slash at its end.
    prefix: str
    trusted_proxies: TrustedProxies


def network_settings(group: Any) -> NetworkSettings:
    """The settings in the group `[roost]`."""
    return NetworkSettings(
        # In a file, `tls_cert =` means that there is none.
        tls_cert=group.tls_cert or None,
        tls_key=group.tls_key or None,
        tls_client_ca=group.tls_client_ca or None,
        prefix=checked_prefix(group.prefix),
        trusted_proxies=_trusted_proxies(group.trusted_proxies),
    )


def checked_prefix(given: str) -> str:
    """The prefix without a slash at its end; `ConfigurationError` if it is no path.

    >>> checked_prefix("/placement/"), checked_prefix("/")
    ('/placement', '')
    """
    prefix = given.rstrip("/")
    if prefix and not _PREFIX.match(prefix):
        raise ConfigurationError(
            f"[roost]prefix is {given!r}, which is no path. Begin it with a slash, and use "
            "letters, digits and . _ ~ - only: /placement."
        )
    return prefix


def _trusted_proxies(names: list[str]) -> TrustedProxies:
    try:
        return TrustedProxies.of(names)
    except ValueError as error:
        raise ConfigurationError(
            f"[roost]trusted_proxies: {error}. Give addresses, networks such as 10.0.0.0/24, or "
            f"`{UNIX}`."
        ) from None
