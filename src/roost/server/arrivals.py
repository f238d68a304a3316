"""Arrivals: the listening sockets of a worker, and the connections that wait at them."""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence

from roost.model.proxies import UNIX
from roost.server.incoming import Environ
from roost.server.listening import Listener

# Connections accepted in one go. In between, the poller serves the open ones.
ACCEPTED_MAX = 64
_EXCLUSIVE = select.EPOLLIN | select.EPOLLEXCLUSIVE


class Arrivals:
    """Waits for connections at all listening sockets, or until a signal comes."""

    def __init__(self, listeners: Sequence[Listener], wakened: socket.socket) -> None:
        self._wakened = wakened
        self._listeners = {listener.socket.fileno(): listener for listener in listeners}
        self._epoll = select.epoll()
        self._epoll.register(wakened, select.EPOLLIN)
        for listener in listeners:
            listener.socket.setblocking(False)
            self._register(listener)

    def wait(self, seconds: float) -> list[Listener]:
        """The sockets at which connections wait."""
        found = []
        for descriptor, _ in self._epoll.poll(seconds):
            if descriptor == self._wakened.fileno():
                self._wakened.recv(4096)
            else:
                found.append(self._listeners[descriptor])
        return found

    def accept_max(self, listener: Listener) -> int:
        """How many connections to accept in one go."""
        return 1 if listener.is_shared else ACCEPTED_MAX

    def step_back(self, listener: Listener) -> None:
        """Let other workers have the next connection of a shared socket.

        The kernel wakes the worker that registered first. That one would get all connections.
        """
        if listener.is_shared:
            self._epoll.unregister(listener.socket)
            self._register(listener)

    def close(self) -> None:
        """Stop listening."""
        self._epoll.close()
        for listener in self._listeners.values():
            listener.socket.close()

    def _register(self, listener: Listener) -> None:
        self._epoll.register(listener.socket, _EXCLUSIVE if listener.is_shared else select.EPOLLIN)


def addresses(client: socket.socket, address: object) -> Environ:
    """Both ends of a connection, as WSGI names them."""
    if not isinstance(address, tuple):
        return {"SERVER_NAME": "localhost", "SERVER_PORT": "0", "REMOTE_ADDR": UNIX}
    try:
        own = client.getsockname()
    except OSError:
        own = ("", 0)
    return {
        "SERVER_NAME": own[0],
        "SERVER_PORT": str(own[1]),
        "REMOTE_ADDR": address[0],
        "REMOTE_PORT": str(address[1]),
    }
