"""The poller: the threads that wait for all clients of a worker process.

The threads wait together. The thread that hears of a connection reads from it, and answers if that
completes a request. Or it writes what the client did not take before. So a slow client holds no
thread, and a request wakes one thread only. With many clients, waking a second thread for each
request took about a seventh more CPU. The main thread accepts connections, and closes those whose
time is over.
"""

from __future__ import annotations

import errno
import logging
import select
import signal
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from roost.model.limits import Limits
from roost.server.connection import Budget, Connection
from roost.server.exchange import CutOff, WsgiApplication, answer, refusal, send_piece
from roost.server.incoming import Environ
from roost.server.listening import ACCEPTED_MAX, Arrivals, Listener, addresses
from roost.server.states import (
    WITHOUT_EVENTS,
    Refused,
    State,
    tell_deaf,
    tell_evicted,
    tell_no_descriptor,
    tell_refused,
    tell_silent,
    tell_unread,
)
from roost.server.tls_socket import TlsSocket

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_READ = select.EPOLLIN | select.EPOLLONESHOT
_WRITE = select.EPOLLOUT | select.EPOLLONESHOT
_SWEEP_SECONDS = 1.0
_LINGER_SECONDS = 3.0
_STOP_POLL_SECONDS = 0.05
# How many connections the poller closes at most when a new one finds no room.
_EVICTED_MAX = 16
# Requests mostly wait for the database or for their turn, so there are many threads.
THREADS = 128
# These threads make the pieces of large answers, one piece of each answer in turn.
STREAM_THREADS = 16
# Large answers that clients read slowly. Beyond this, the poller disconnects the slowest client.
_STREAMS_MAX = 128
# How long a stop waits for requests in flight.
STOP_SECONDS = 30.0
# The kernel announces a connection again and again until the process accepts it.
_NO_DESCRIPTOR_SECONDS = 0.01
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


# All labels of the gauge, so that a state without connections shows 0.
_STATES = ("idle", "reading", "answering", "writing", "following", "lingering")


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a worker's server, and what it has done so far."""

    # How many connections are in each state.
    connections: Mapping[str, int]
    # How many threads answer, and how many are idle.
    threads: Mapping[str, int]
    accepted: int
    # Connections that were closed because new ones came.
    evicted: int
    # Requests that the application never saw, by status.
    refused: Mapping[int, int]


class Threads(Generic[T]):
    """A fixed number of threads that run one function on each item.

    The thread that became idle last works first: its memory is still in the processor's cache.
    """

    def __init__(self, name: str, count: int, work: Callable[[T], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._waiting: deque[T] = deque()
        self._idle: list[_Idle[T]] = []
        for number in range(count):
            thread = threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            thread.start()

    def put(self, item: T) -> None:
        """Give the item to an idle thread, now or as soon as there is one."""
        with self._lock:
            if not self._idle:
                self._waiting.append(item)
                return
            idle = self._idle.pop()
        idle.item = item
        idle.called.release()

    def _run(self) -> None:
        idle: _Idle[T] = _Idle()
        while True:
            item = self._next(idle)
            try:
                self._work(item)
            except Exception:
                _LOG.exception("A thread of the server failed")
            # While the thread waits, the item must not stay alive.
            del item

    def _next(self, idle: _Idle[T]) -> T:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(idle)
        idle.called.acquire()
        item, idle.item = idle.item, None
        assert item is not None
        return item


class _Idle(Generic[T]):
    """A thread that waits for work."""

    __slots__ = ("called", "item")

    def __init__(self) -> None:
        self.item: T | None = None
        self.called = threading.Lock()
        self.called.acquire()


class Poller:
    """Serves an application on listening sockets until it is told to stop."""

    def __init__(self, application: WsgiApplication, limits: Limits) -> None:
        self._listeners: Sequence[Listener] = ()
        self._application = application
        self._limits = limits
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._large_bodies = Budget(limits.max_bodies_bytes)
        self._stopping = False
        self._sweep_at = 0.0
        # How many connections the poller evicted since the last sweep.
        self._evicted = 0
        self._accepted_count = 0
        self._evicted_count = 0
        self._refused: Counter[int] = Counter()
        # Guards which connections are parked and which were woken.
        self._parking = threading.Lock()
        self._streams = Threads("stream", STREAM_THREADS, self._send_piece)
        self._server: Environ = {"wsgi.url_scheme": "http", "SERVER_SOFTWARE": "Roost"}
        self._server["roost.is_stopping"] = self.is_stopping

    def run(self, listeners: Sequence[Listener]) -> None:
        """Serve until `stop`, then let requests in flight finish."""
        self._listeners = listeners
        waker, wakened = socket.socketpair()
        for end in (waker, wakened):
            end.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        for number in range(THREADS):
            threading.Thread(target=self._attend, name=f"answer-{number}", daemon=True).start()
        arrivals = Arrivals(listeners, wakened)
        while not self._stopping:
            self._await_arrivals(arrivals)
        self._wake_all()
        # Clients still get answers, while a proxy learns that it shall ask another server.
        drained_at = time.monotonic() + self._limits.drain_seconds
        while time.monotonic() < drained_at:
            self._await_arrivals(arrivals)
        self._finish(arrivals)

    def is_stopping(self) -> bool:
        """Whether the server finishes its work and takes no more."""
        return self._stopping

    def report(self) -> ServerState:
        """The state of the server now."""
        states = Counter(dict.fromkeys(_STATES, 0))
        for connection in self._all():
            states["idle" if connection.is_idle else connection.state.name.lower()] += 1
        busy = min(states["answering"], THREADS)
        return ServerState(
            connections=states,
            threads={"answering": busy, "idle": THREADS - busy},
            accepted=self._accepted_count,
            evicted=self._evicted_count,
            refused=dict(self._refused),
        )

    def stop(self, *_: object) -> None:
        """Stop soon. A handler of a signal calls it."""
        self._stopping = True

    def _await_arrivals(self, arrivals: Arrivals) -> None:
        """Wait for new connections, and look after the open ones once in a while."""
        waiting = arrivals.wait(_SWEEP_SECONDS)
        now = time.monotonic()
        for listener in waiting:
            if self._accept(listener, arrivals.accept_max(listener), now):
                arrivals.step_back(listener)
        if now >= self._sweep_at:
            self._sweep(now)

    def _attend(self) -> None:
        """Handle one event after another. The kernel wakes the thread that began to wait last."""
        while True:
            for descriptor, _ in self._epoll.poll(-1, 1):
                connection = self._connections.get(descriptor)
                if connection is not None:
                    with connection.owner:
                        self._handle_safely(connection, time.monotonic())
                # While the thread waits, the connection must not stay alive.
                del connection

    # Connections come.

    def _accept(self, listener: Listener, maximum: int, now: float) -> int:
        """Accept connections that wait, at most as many; return how many there were."""
        for count in range(maximum):
            try:
                client, address = listener.socket.accept()
            except BlockingIOError:
                return count
            except OSError as error:
                # The client is gone already, or no descriptor is left.
                if error.errno in _NO_DESCRIPTOR:
                    self._evict()
                    tell_no_descriptor(error)
                    time.sleep(_NO_DESCRIPTOR_SECONDS)
                    return count
                continue
            if len(self._connections) >= self._limits.max_connections:
                self._evict()
            self._open(listener, client, address, now)
        return maximum

    def _open(self, listener: Listener, client: socket.socket, address: object, now: float) -> None:
        client.setblocking(False)
        self._accepted_count += 1
        environ = {**self._server, **addresses(client, address)}
        wire: socket.socket | TlsSocket = client
        if listener.certificates is not None:
            environ["wsgi.url_scheme"] = "https"
            wire = TlsSocket(client, listener.certificates.context(now))
        connection = Connection(wire, environ, self._limits, self._large_bodies)
        connection.deadline = now + self._limits.header_seconds
        connection.waits_since = now
        self._connections[client.fileno()] = connection
        try:
            self._epoll.register(client, _READ)
        except OSError as error:
            _LOG.error("A connection cannot be served: %s", error)
            self._close(connection)

    def _evict(self) -> None:
        """Close some connections that wait for their clients: idle ones first, oldest first."""
        waiting = [one for one in self._all() if one.state is not State.ANSWERING]
        waiting.sort(key=lambda one: (one.state is State.WRITING, not one.is_idle, one.waits_since))
        wanted = min(_EVICTED_MAX, len(self._connections) // 16 + 1)
        for connection in waiting:
            if not wanted:
                break
            if connection.take_if_waiting():
                if not (connection.is_idle and connection.has_unread_bytes):
                    self._close(connection)
                    self._evicted += 1
                    self._evicted_count += 1
                    wanted -= 1
                connection.owner.release()

    # Bytes come, or the client takes some.

    def _handle_safely(self, connection: Connection, now: float) -> None:
        try:
            self._handle(connection, now)
        except Exception:
            # The bytes of one client must not end the service for all clients.
            _LOG.exception("A connection failed and is closed")
            self._close(connection)

    def _handle(self, connection: Connection, now: float) -> None:
        if connection.state in WITHOUT_EVENTS:
            # The event is older than the state.
            return
        if connection.state is State.WRITING:
            self._write(connection)
        elif not connection.receive(now):
            self._close(connection)
        elif connection.state is State.FOLLOWING:
            self._listen(connection)
        elif connection.state is State.LINGERING or not self._take_up(connection):
            self._wait_for(_READ, connection)

    def _take_up(self, connection: Connection) -> bool:
        """Answer the next request or refuse the bytes; return whether there was either."""
        if connection.find_request():
            connection.state = State.ANSWERING
            self._answer(connection)
        elif connection.refused is not None:
            self._refuse(connection, connection.refused)
        else:
            return False
        return True

    def _wait_for(self, events: int, connection: Connection) -> None:
        """Let epoll report the connection again."""
        if isinstance(connection.socket, TlsSocket):
            events |= connection.socket.more_events
        with suppress(OSError, ValueError):
            self._epoll.modify(connection.socket, events)

    def _refuse(self, connection: Connection, refused: Refused) -> None:
        tell_refused(connection.environ, refused)
        self._refused[refused.status.value] += 1
        connection.keep_alive = False
        connection.wants_lingering = True
        with suppress(OSError):
            connection.send([refusal(refused.status, refused.text)])
        self._settle(connection)

    def _write(self, connection: Connection) -> None:
        before = connection.unsent_bytes
        try:
            connection.flush()
        except OSError:
            self._close(connection)
            return
        if not connection.unsent:
            self._settle(connection)
            return
        if connection.unsent_bytes != before:
            connection.waits_since = time.monotonic()
            connection.deadline = connection.waits_since + self._limits.unread_seconds
        self._wait_for(_WRITE, connection)

    # Threads make answers.

    def _answer(self, connection: Connection) -> None:
        """Answer the requests that have come, as long as the client takes the answers."""
        try:
            while connection.find_request():
                answer(connection, self._application, self.is_stopping, self._wake)
                if connection.unsent or connection.stream or not connection.keep_alive:
                    break
        except OSError:
            self._close(connection)
        else:
            self._settle(connection)

    def _send_piece(self, connection: Connection) -> None:
        with connection.owner:
            if connection.state is State.CLOSED:
                return
            connection.state = State.ANSWERING
            try:
                has_nothing = send_piece(connection)
            except OSError:
                self._close(connection)
            except CutOff:
                # The client sees the end of the connection before the end of the answer.
                self._close(connection)
            else:
                if has_nothing:
                    self._park(connection)
                else:
                    self._go_on(connection)

    def _park(self, connection: Connection) -> None:
        """Wait until the application has more. Only the end of the connection ends that."""
        connection.state = State.FOLLOWING
        with self._parking:
            was_woken, connection.was_woken = connection.was_woken, False
            connection.is_parked = not was_woken
        # From here on another thread may wake the connection, which hands it to a thread as well.
        if was_woken:
            self._streams.put(connection)
        else:
            self._listen(connection)

    def _listen(self, connection: Connection) -> None:
        """Let epoll report that the client has gone, unless the client sends ahead."""
        if not connection.has_more:
            self._wait_for(_READ, connection)

    def _wake(self, connection: Connection) -> None:
        """The application has more to send. Any thread may say so."""
        with self._parking:
            is_parked, connection.is_parked = connection.is_parked, False
            connection.was_woken = not is_parked
        if is_parked:
            self._streams.put(connection)

    def _wake_all(self) -> None:
        """Let every answer that waits for the application see that the server is stopping."""
        for connection in self._all():
            if connection.follows:
                self._wake(connection)

    def _go_on(self, connection: Connection) -> None:
        """After a piece of an answer: wait for what comes next."""
        if connection.has_more and connection.stream is None:
            # The thread that hears that the client can take more answers its next request.
            self._await_reader(connection)
        else:
            self._settle(connection)

    def _settle(self, connection: Connection) -> None:
        """Let the connection wait for what comes next."""
        if connection.unsent:
            self._await_reader(connection)
        elif connection.stream is not None:
            connection.state = State.ANSWERING
            self._streams.put(connection)
        elif connection.keep_alive:
            self._await_request(connection)
        elif connection.wants_lingering:
            self._linger(connection)
        else:
            self._close(connection)

    def _await_reader(self, connection: Connection) -> None:
        connection.waits_since = time.monotonic()
        connection.deadline = connection.waits_since + self._limits.unread_seconds
        connection.state = State.WRITING
        self._wait_for(_WRITE, connection)

    def _await_request(self, connection: Connection) -> None:
        if self._take_up(connection):
            return
        connection.let_continue()
        connection.waits_since = time.monotonic()
        connection.deadline = connection.waits_since + connection.reading_seconds
        connection.state = State.READING
        self._wait_for(_READ, connection)

    def _linger(self, connection: Connection) -> None:
        """Read on for a while, because closing a socket with unread bytes discards the answer."""
        connection.deadline = time.monotonic() + _LINGER_SECONDS
        connection.state = State.LINGERING
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_WR)
        self._wait_for(_READ, connection)

    # Connections end.

    def _close(self, connection: Connection) -> None:
        # The kernel gives the descriptor of a closed socket to the next connection at once.
        self._connections.pop(connection.socket.fileno(), None)
        connection.close()

    def _all(self) -> list[Connection]:
        return list(self._connections.values())

    def _sweep(self, now: float) -> None:
        """Close connections whose time is over, and those that hold too many bytes."""
        self._sweep_at = now + _SWEEP_SECONDS
        if self._evicted:
            tell_evicted(self._evicted, self._limits.max_connections)
            self._evicted = 0
        for connection in self._all():
            if connection.deadline < now and connection.take_if_waiting():
                self._time_out(connection)
                connection.owner.release()
        self._bound_unread()

    def _bound_unread(self) -> None:
        """Close the connections of the slowest clients if all together hold too many bytes."""
        writing = [one for one in self._all() if one.state is State.WRITING]
        unread = sum(connection.unsent_bytes for connection in writing)
        streams = sum(connection.stream is not None for connection in writing)
        for connection in sorted(writing, key=lambda one: one.waits_since):
            if unread <= self._limits.max_unread_bytes and streams <= _STREAMS_MAX:
                break
            if connection.take_if_waiting():
                unread -= connection.unsent_bytes
                streams -= connection.stream is not None
                tell_unread(connection.environ)
                self._close(connection)
                connection.owner.release()

    def _time_out(self, connection: Connection) -> None:
        if connection.state is State.WRITING:
            tell_deaf(connection.environ)
            self._close(connection)
        elif connection.state is not State.READING:
            self._close(connection)
        elif connection.read_at <= connection.deadline and connection.has_unread_bytes:
            # The request has come, but no thread was free to read it: the client is not late.
            return
        elif connection.is_idle:
            if connection.is_new:
                tell_silent(connection.environ)
            self._close(connection)
        else:
            self._refuse(connection, connection.late)

    def _finish(self, arrivals: Arrivals) -> None:
        """Stop listening, answer the requests that have come, and wait for those in flight."""
        deadline = time.monotonic() + STOP_SECONDS
        for listener in self._listeners:
            while self._accept(listener, ACCEPTED_MAX, time.monotonic()) == ACCEPTED_MAX:
                pass
        arrivals.close()
        while time.monotonic() < deadline:
            for connection in self._all():
                if connection.is_idle and connection.take_if_waiting():
                    if connection.is_idle and not connection.has_unread_bytes:
                        self._close(connection)
                    connection.owner.release()
            if not self._connections:
                break
            time.sleep(_STOP_POLL_SECONDS)
            if time.monotonic() >= self._sweep_at:
                self._sweep(time.monotonic())
