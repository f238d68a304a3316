"""A worker process: it loads the application, listens, and answers until SIGTERM."""

from __future__ import annotations

import ctypes
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

from roost.model.limits import Limits
from roost.server.exchange import WsgiApplication
from roost.server.poller import Poller

_LOG = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_BACKLOG = 4096
# Files that a process has open besides its connections: the database's, logs, libraries.
_OTHER_FILES = 512

# The numbers of glibc's options, and what they are set to.
_KEEP_MEMORY = (
    (-8, 1),  # M_ARENA_MAX: threads share freed memory, because they take turns anyway
    (-3, 32 * 1024 * 1024),  # M_MMAP_THRESHOLD
    (-1, 64 * 1024 * 1024),  # M_TRIM_THRESHOLD
)


def run_worker(
    load: Callable[[], WsgiApplication],
    limits: Limits,
    host: str,
    port: int,
    is_ready: Callable[[], None],
) -> None:
    """Serve what `load` returns, in a process that ends when its parent does."""
    # A terminal sends these signals to all processes. The supervisor stops its workers in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    _end_with_parent()
    _keep_memory()
    application = load()
    _give_back_memory()
    listener = listen(host, port)
    poller = Poller(listener, application, _within_open_files(limits))
    is_ready()
    poller.run()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Other processes may listen at the same address."""
    listener = bind(host, port)
    listener.listen(_BACKLOG)
    return listener


def bind(host: str, port: int) -> socket.socket:
    """A socket at the address; it takes no connections until it listens."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Accepted connections inherit it. So the kernel sends small answers at once.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _within_open_files(limits: Limits) -> Limits:
    """The limits, with no more connections than the system lets this process open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.max_connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted >= limits.max_connections + _OTHER_FILES:
        return limits
    fewer = max(wanted - _OTHER_FILES, wanted // 2)
    _LOG.warning(
        "A worker takes %d connections instead of [roost]max_connections = %d, because it may "
        "open %d files. Raise that with `ulimit -n` or LimitNOFILE.",
        fewer,
        limits.max_connections,
        wanted,
    )
    return replace(limits, max_connections=fewer)


def _keep_memory() -> None:
    """Let the allocator keep the memory of an answer for the next one.

    An answer of two megabytes has 700 pages. Getting them from the system for every answer costs
    more CPU than finding and rendering its candidates.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option, value in _KEEP_MEMORY:
            libc.mallopt(option, value)


def _give_back_memory() -> None:
    """Return free memory once: reading all providers needs more memory than keeping them."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _end_with_parent() -> None:
    """Let the system kill this worker when the supervisor dies, so that the port is free again.

    In an orderly stop the supervisor waits for its workers, so no request is interrupted.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
