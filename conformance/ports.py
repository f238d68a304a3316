"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

# Below the range from which Linux takes the ports of outgoing connections, so that none of the
# many connections a run makes can take the port before its server does.
PORTS = range(20000, 30000)


@contextmanager
def reserved_port() -> Iterator[int]:
    """Lend a TCP port on which nothing listens and which no other borrower is given meanwhile.

    The UDP port of the same number is held as the token of the loan: it excludes other borrowers
    in all processes, does not disturb the TCP server, and goes away with its process.
    """
    while True:
        port = random.choice(PORTS)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as token,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe,
        ):
            try:
                token.bind(("127.0.0.1", port))
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            probe.close()
            yield port
            return
