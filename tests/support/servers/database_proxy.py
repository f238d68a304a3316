"""A proxy in front of a database server that freezes, swallows or cuts what passes it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from types import TracebackType

from sqlalchemy.engine import make_url


class Mood(Enum):
    """The treatment of bytes and of new connections."""

    FORWARD = "forward"
    FREEZE = "freeze"
    """The proxy keeps all bytes until the mood changes, like a server that is stopped."""
    SWALLOW = "swallow"
    """The proxy drops all bytes. It accepts new connections."""
    REFUSE = "refuse"
    """The proxy accepts new connections and closes them at once."""


class DatabaseProxy:
    """Passes connections on to the server of a database URL, on a spare loopback port."""

    def __init__(self, database_url: str) -> None:
        url = make_url(database_url)
        assert url.host is not None
        assert url.port is not None
        self._server = (url.host, url.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.set(port=self._listener.getsockname()[1]).render_as_string(False)
        self._sockets: set[socket.socket] = set()
        self.mood = Mood.FORWARD
        self._changed = threading.Condition()
        # The number of connections that a text has ended.
        self.cuts = 0
        self.text_seen = threading.Event()
        self._is_cut: Callable[[bytes], bool] = lambda _data: False

    def __enter__(self) -> DatabaseProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Both calls wake the accepting thread, which would hold the listener open.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.be(Mood.FORWARD)
        self.cut()

    def be(self, mood: Mood) -> None:
        """Change the treatment of all connections, open ones included."""
        with self._changed:
            self.mood = mood
            self._changed.notify_all()

    def cut(self) -> None:
        """End all connections."""
        with self._changed:
            sockets = list(self._sockets)
        for open_socket in sockets:
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)

    def cut_when_sent(self, text: bytes, *, times: int | None = None) -> None:
        """End a connection when its client sends the text. The text does not reach the server."""
        self.cuts = 0
        self.text_seen.clear()

        def is_cut(data: bytes) -> bool:
            found = text in data and (times is None or self.cuts < times)
            if found:
                self.cuts += 1
                self.text_seen.set()
            return found

        self._is_cut = is_cut

    def swallow_when_sent(self, text: bytes) -> None:
        """Drop all bytes from the moment a client sends the text until the mood changes."""

        def is_cut(data: bytes) -> bool:
            if text in data and not self.cuts:
                self.cuts = 1
                self.be(Mood.SWALLOW)
                self.text_seen.set()
            return False

        self._is_cut = is_cut

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.mood is Mood.REFUSE:
                client.close()
                continue
            server = socket.create_connection(self._server)
            with self._changed:
                self._sockets |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(
                    target=self._pump, args=(source, target, source is client), daemon=True
                ).start()

    def _pump(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if from_client and self._is_cut(data):
                    break
                with self._changed:
                    self._changed.wait_for(lambda: self.mood is not Mood.FREEZE)
                    swallows = self.mood is Mood.SWALLOW
                if not swallows:
                    target.sendall(data)
        for open_socket in (source, target):
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
        with self._changed:
            self._sockets.discard(source)
        source.close()
