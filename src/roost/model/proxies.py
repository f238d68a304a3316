"""The proxies that a server believes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

UNIX = "unix"
"""What stands for all clients of unix sockets, which have no address."""

Address = IPv4Address | IPv6Address

# Servers that know no address of a client, because it uses a unix socket, say one of these.
_WITHOUT_ADDRESS = frozenset({"", "-", UNIX})


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The addresses of proxies whose headers count."""

    networks: tuple[IPv4Network | IPv6Network, ...]
    unix: bool

    @classmethod
    def of(cls, names: Sequence[str]) -> TrustedProxies:
        """The proxies of these addresses, networks, or `unix`; `ValueError` for another name."""
        networks = tuple(ip_network(name) for name in names if name != UNIX)
        return cls(networks, UNIX in names)

    def trust_peer(self, peer: str) -> bool:
        """Whether the client of a connection is such a proxy.

        >>> local = TrustedProxies.of(["127.0.0.0/8", "unix"])
        >>> [local.trust_peer(peer) for peer in ("127.0.0.1", "::ffff:127.0.0.1", "unix", "::1")]
        [True, True, True, False]
        """
        if peer in _WITHOUT_ADDRESS:
            return self.unix
        address = address_of(peer)
        return address is not None and self.trust(address)

    def trust(self, address: Address) -> bool:
        """Whether a proxy has this address."""
        return any(
            network.version == address.version and address in network for network in self.networks
        )


def address_of(text: str) -> Address | None:
    """The address in a header or of a peer, which may have a port; `None` if there is none.

    >>> [str(address_of(text)) for text in ("192.0.2.1:80", "[2001:db8::1]:80", "::ffff:192.0.2.1")]
    ['192.0.2.1', '2001:db8::1', '192.0.2.1']
    >>> address_of("unknown"), address_of("1.2.3.4\\n")
    (None, None)
    """
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        # The zone of an address is a name, and an address from outside has none.
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
