"""The options of `roost serve` about the network: where it listens, TLS, and its path."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from roost.configuration.network import NetworkSettings, checked_prefix
from roost.server.certificates import CertificateFiles, certificate_files
from roost.server.listening import Place, TcpPlace, UnixPlace, inherited_places

F = TypeVar("F", bound=Callable[..., Any])

_HOST = "127.0.0.1"
_PORT = 8778


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """The options as the command line has them; `None` and an empty text if it has none."""

    host: str | None
    port: int | None
    unix_socket: str | None
    socket_mode: int
    tls_cert: str | None
    tls_key: str | None
    tls_client_ca: str | None
    prefix: str | None

    def places(self) -> list[Place]:
        """Where to listen: at the default port unless the operator names anything else."""
        places = inherited_places(os.environ)
        if self.unix_socket is not None:
            places.append(UnixPlace(self.unix_socket, self.socket_mode))
        if not places or self.host is not None or self.port is not None:
            host = _HOST if self.host is None else self.host
            places.append(TcpPlace(host, self.port or _PORT))
        return places

    def certificate_files(self, settings: NetworkSettings) -> CertificateFiles | None:
        """The files for TLS; those of the command line come first, and an empty name means none."""
        return certificate_files(
            _chosen(self.tls_cert, settings.tls_cert),
            _chosen(self.tls_key, settings.tls_key),
            _chosen(self.tls_client_ca, settings.tls_client_ca),
        )

    def chosen_prefix(self, settings: NetworkSettings) -> str:
        """The path below which the service is."""
        return settings.prefix if self.prefix is None else checked_prefix(self.prefix)


def _chosen(given: str | None, configured: str | None) -> str | None:
    return configured if given is None else given or None


def _file_mode(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """The mode of a file as a number, from its octal digits."""
    if not (value.isdigit() and set(value) <= set("01234567") and int(value, 8) <= 0o777):
        raise click.BadParameter(f"{value} is no mode of a file; give octal digits such as 660.")
    return int(value, 8)


def network_options(command: F) -> F:
    """Add the options; the command gets them as `NetworkOptions` in `network`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--host", help=f"Address to listen at. [default: {_HOST}]"),
    click.option(
        "--port", type=click.IntRange(1, 65535), help=f"Port to listen at. [default: {_PORT}]"
    ),
    click.option(
        "--unix-socket",
        metavar="PATH",
        help="Listen at a unix socket: instead of a port, or besides --host and --port.",
    ),
    click.option(
        "--socket-mode",
        callback=_file_mode,
        metavar="MODE",
        default="660",
        show_default=True,
        help="The mode of its file.",
    ),
    click.option(
        "--tls-cert",
        metavar="FILE",
        help="Speak HTTPS with the certificate in this file (PEM). [default: [roost]tls_cert]",
    ),
    click.option(
        "--tls-key",
        metavar="FILE",
        help="The key of the certificate, if it is in another file. [default: [roost]tls_key]",
    ),
    click.option(
        "--tls-client-ca",
        metavar="FILE",
        help="Take only clients with a certificate of this authority. "
        "[default: [roost]tls_client_ca]",
    ),
    click.option(
        "--prefix",
        metavar="PATH",
        help="Serve below a path such as /placement. [default: [roost]prefix]",
    ),
)
