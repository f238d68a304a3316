"""A worker process: it loads the application, listens, and answers until SIGTERM."""

from __future__ import annotations

import ctypes
import logging
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from roost.freed_memory import give_back_memory
from roost.model.limits import Limits
from roost.server.certificates import CertificateFiles, Certificates
from roost.server.exchange import WsgiApplication
from roost.server.listening import Place
from roost.server.poller import Poller, ServerState

_LOG = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
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
    places: Sequence[Place],
    is_ready: Callable[[], None],
    certificate_files: CertificateFiles | None = None,
    *,
    watch: Callable[[Callable[[], ServerState]], None] | None = None,
) -> None:
    """Serve what `load` returns, in a process that ends when its parent does.

    `watch` gets a function that reports the state of the server.
    """
    # A terminal sends these signals to all processes. The supervisor stops its workers in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    _end_with_parent()
    _keep_memory()
    application = load()
    # Reading all providers needs more memory than keeping them.
    give_back_memory()
    certificates = None if certificate_files is None else Certificates(certificate_files)
    poller = Poller(application, _within_open_files(limits))
    # From the next line on clients may connect. A stop gives them their answers.
    signal.signal(signal.SIGTERM, poller.stop)
    listeners = [place.listener(certificates if place.speaks_tls else None) for place in places]
    if watch is not None:
        watch(poller.report)
    is_ready()
    poller.run(listeners)


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


def _end_with_parent() -> None:
    """Let the system kill this worker when the supervisor dies, so that the port is free again.

    In an orderly stop the supervisor waits for its workers, so no request is interrupted.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
