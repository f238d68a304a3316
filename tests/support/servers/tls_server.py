"""A live server that speaks TLS, with what its clients need."""

from __future__ import annotations

from dataclasses import dataclass

from support.certificates import Authority, Issued
from support.raw_client import RawClient
from support.servers.live_server import LiveServer


@dataclass(frozen=True)
class TlsServer:
    """The server, its certificate, and the authority that signed it."""

    live: LiveServer
    authority: Authority
    issued: Issued

    def client(self) -> RawClient:
        """A client with a connection."""
        return RawClient(self.live.port, self.live.tls)
