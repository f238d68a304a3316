"""Where a server listens: TCP ports, unix sockets, and sockets that systemd hands over.

Each worker has a listening socket of its own for a TCP port, because the kernel then spreads new
connections evenly. Workers share all other sockets.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import stat
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from roost.model.errors import AddressUnusable, ConfigurationError
from roost.model.proxies import UNIX
from roost.server.certificates import Certificates
from roost.server.incoming import Environ

_BACKLOG = 4096
# The kernel takes no longer path of a unix socket.
_PATH_BYTES_MAX = 107
# systemd hands sockets over from this descriptor on.
_FIRST_INHERITED = 3

# Connections accepted in one go. In between, the poller serves the open ones.
ACCEPTED_MAX = 64
_EXCLUSIVE = select.EPOLLIN | select.EPOLLEXCLUSIVE


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket of a worker."""

    socket: socket.socket
    # Other workers accept connections from the same socket.
    is_shared: bool = False
    # With certificates, the socket speaks TLS.
    certificates: Certificates | None = None


class Place(Protocol):
    """A place at which the server listens."""

    speaks_tls: bool
    """Whether it speaks TLS if the server has a certificate."""

    @property
    def shown(self) -> str:
        """The place, for operators."""

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach it."""

    def check(self) -> None:
        """Raise `AddressUnusable` or `ConfigurationError` if the server cannot listen there."""

    def hold(self) -> None:
        """Keep the place for this server, in the process that starts the workers."""

    def listener(self, certificates: Certificates | None) -> Listener:
        """The listening socket of a worker."""

    def leave(self) -> None:
        """Give the place up, because the server stops."""


class TcpPlace:
    """A TCP port of an address."""

    speaks_tls = True

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._held: socket.socket | None = None

    @property
    def shown(self) -> str:
        """The address with its port."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    @property
    def is_local(self) -> bool:
        """Whether the address is one of the loopback interface."""
        return _is_loopback(self._host)

    def check(self) -> None:
        """Refuse a port that another server uses, because the kernel would let both share it."""
        try:
            self._bind(reuse_port=False).close()
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "that is no name of a host"
            raise AddressUnusable(
                f"Roost cannot listen at {self.shown}: {why}. Choose another --host or --port."
            ) from None

    def hold(self) -> None:
        """Bind without listening: the workers listen at the same address."""
        self._held = self._bind(reuse_port=True)

    def listener(self, certificates: Certificates | None) -> Listener:
        """A socket of this worker alone."""
        own = self._bind(reuse_port=True)
        own.listen(_BACKLOG)
        return Listener(own, certificates=certificates)

    def leave(self) -> None:
        """Let other programs bind the port."""
        if self._held is not None:
            self._held.close()

    def _bind(self, *, reuse_port: bool) -> socket.socket:
        family, kind, protocol, _, address = socket.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            _send_at_once(bound)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
        return bound


class UnixPlace:
    """A unix socket, which appears as a file. It speaks plain HTTP."""

    speaks_tls = False
    is_local = True

    def __init__(self, path: str, mode: int) -> None:
        self._path = path
        self._mode = mode
        self._held: socket.socket | None = None
        # Device and number of the file, once it is there.
        self._file: tuple[int, int] | None = None

    @property
    def shown(self) -> str:
        """The path of the socket."""
        return f"unix:{self._path}"

    def check(self) -> None:
        """Refuse a path at which another server listens, or at which something else is."""
        if len(os.fsencode(self._path)) > _PATH_BYTES_MAX:
            raise self._refusal(f"it is too long. Choose one of {_PATH_BYTES_MAX} bytes at most")
        try:
            mode = os.lstat(self._path).st_mode
        except FileNotFoundError:
            if not Path(self._path).absolute().parent.is_dir():
                raise self._refusal("its directory does not exist. Create it") from None
            return
        except OSError as error:
            raise self._refusal(f"{error.strerror}. Choose another path") from None
        if not stat.S_ISSOCK(mode):
            raise self._refusal("there is a file that is no socket. Choose another path")
        with socket.socket(socket.AF_UNIX) as probe:
            refused = probe.connect_ex(self._path)
        if refused != errno.ECONNREFUSED:
            why = "another server listens there" if not refused else os.strerror(refused)
            raise AddressUnusable(
                f"Roost cannot listen at the unix socket {self._path}: {why}. Stop that server, or "
                "choose another path."
            )

    def hold(self) -> None:
        """Listen, in place of a socket file that a dead server left."""
        self.check()
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        held = socket.socket(socket.AF_UNIX)
        # Until the socket has its mode, no client may connect.
        umask = os.umask(0o777)
        try:
            held.bind(self._path)
        except OSError as error:
            held.close()
            raise self._refusal(f"{error.strerror or error}. Choose another path") from None
        finally:
            os.umask(umask)
        held.listen(_BACKLOG)
        os.chmod(self._path, self._mode)
        self._file = _identity(self._path)
        self._held = held

    def listener(self, certificates: Certificates | None) -> Listener:
        """The socket of all workers."""
        assert self._held is not None
        return Listener(self._held, is_shared=True)

    def leave(self) -> None:
        """Remove the file, unless another server has put its own there."""
        if self._held is None:
            return
        self._held.close()
        with suppress(OSError):
            if _identity(self._path) == self._file:
                os.unlink(self._path)

    def _refusal(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"Roost cannot listen at the unix socket {self._path}: {why}.")


class InheritedPlace:
    """A socket that listens already: systemd has made it."""

    def __init__(self, held: socket.socket) -> None:
        self._held = held
        self.speaks_tls = held.family != socket.AF_UNIX

    @property
    def shown(self) -> str:
        """The address of the socket."""
        name = self._held.getsockname()
        if self._held.family == socket.AF_UNIX:
            return f"unix:{name}"
        return TcpPlace(name[0], name[1]).shown

    @property
    def is_local(self) -> bool:
        """Whether the socket is a file, or an address of the loopback interface."""
        return self._held.family == socket.AF_UNIX or _is_loopback(self._held.getsockname()[0])

    def check(self) -> None:
        """Refuse a socket that takes no connections."""
        if not self._held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise ConfigurationError(
                "systemd gave Roost a socket that takes no connections. Use ListenStream= and "
                "Accept=no in the unit of the socket."
            )

    def hold(self) -> None:
        """Prepare the socket; it listens already."""
        if self._held.family != socket.AF_UNIX:
            _send_at_once(self._held)

    def listener(self, certificates: Certificates | None) -> Listener:
        """The socket of all workers."""
        return Listener(self._held, is_shared=True, certificates=certificates)

    def leave(self) -> None:
        """Close the socket. systemd keeps its own copy for the next start."""
        self._held.close()


def inherited_places(environment: MutableMapping[str, str]) -> list[Place]:
    """The sockets that systemd started this process with; children do not get them again."""
    process_id = environment.pop("LISTEN_PID", "")
    count = environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if process_id != str(os.getpid()) or not count.isdigit():
        return []
    places: list[Place] = []
    for descriptor in range(_FIRST_INHERITED, _FIRST_INHERITED + int(count)):
        os.set_inheritable(descriptor, False)
        places.append(InheritedPlace(socket.socket(fileno=descriptor)))
    return places


def _identity(path: str) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_dev, status.st_ino


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _send_at_once(listening: socket.socket) -> None:
    """Let the kernel send small answers at once. Accepted connections inherit it."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


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
