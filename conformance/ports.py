"""Free loopback ports."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

# Linux takes the ports of outgoing connections from a higher range. So no connection of a run can
# take a port before its server does.
PORTS = range(20000, 30000)


@contextmanager
def reserved_port() -> Iterator[int]:
    """Lend a TCP port without a listener, and to one borrower at a time.

    The UDP port of the same number is the token of the loan. The token excludes borrowers in all
    processes, does not disturb the TCP server, and goes away with its process.
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
