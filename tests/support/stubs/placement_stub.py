"""A server on a spare loopback port that follows the script of a test, faults included."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.waiting import SECONDS_MAX


@dataclass(frozen=True)
class Received:
    """A request as the stub received it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer, JSON unless its body is bytes.

    With `sent`, the connection ends after so many bytes of the body.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None

    def head(self, length: int) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Whatever", f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


@dataclass(frozen=True)
class HangUp:
    """No answer: the stub closes the connection, before it reads the request if `unread`."""

    unread: bool = False


@dataclass(frozen=True)
class Silence:
    """No answer: the stub waits for `until`, then closes the connection."""

    until: threading.Event


@dataclass(frozen=True)
class RawBytes:
    """An answer of exactly these bytes, with a pause after each part. Then the stub hangs up."""

    parts: Iterable[bytes]
    pause: float = 0.0


Step = Reply | HangUp | Silence | RawBytes


class PlacementStub:
    """Answers each request with the next step of its script, then as `otherwise` says."""

    def __init__(
        self,
        *script: Step,
        otherwise: Callable[[Received], Step] = lambda _: Reply(body={}),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.script = deque(script)
        self.otherwise = otherwise
        self.received: list[Received] = []
        self.connections = 0
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """The method and path of each request, in order."""
        return [f"{request.method} {request.path}" for request in self.received]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # This wakes the thread in `accept`.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close all connections, as a server closes idle ones."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def all_hung_up(self) -> bool:
        """Whether all clients close their connections."""
        for thread in self._threads[1:]:
            thread.join(SECONDS_MAX)
        return not any(thread.is_alive() for thread in self._threads[1:])

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls:
                self._open.discard(connection)
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._open.add(connection)
            with connection.makefile("rb") as reader:
                while self._serve_one(connection, reader):
                    pass
        except OSError:
            pass
        finally:
            self._open.discard(connection)
            connection.close()

    def _serve_one(self, connection: socket.socket, reader: BufferedReader) -> bool:
        """Serve one request. Returns whether the connection stays open."""
        if self.script and self.script[0] == HangUp(unread=True):
            if connection.recv(1, socket.MSG_PEEK):
                self.script.popleft()
            return False
        request = _read(reader)
        if request is None:
            return False
        self.received.append(request)
        step = self.script.popleft() if self.script else self.otherwise(request)
        if isinstance(step, Silence):
            step.until.wait()
        if isinstance(step, RawBytes):
            for part in step.parts:
                connection.sendall(part)
                time.sleep(step.pause)
        if not isinstance(step, Reply):
            return False
        body = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        body = b"" if step.body is None else body
        connection.sendall(step.head(len(body)) + body[: step.sent])
        return step.sent is None


def _read(reader: BufferedReader) -> Received | None:
    line = reader.readline().decode()
    if not line:
        return None
    method, path, _ = line.split()
    headers = {name.lower(): value for name, value in http.client.parse_headers(reader).items()}
    body = reader.read(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)


@contextmanager
def closed_port_url() -> Iterator[str]:
    """A URL where connections are refused: the port is bound, but no process listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@dataclass(frozen=True)
class Certificates:
    """The TLS context of a stub, and the file of the authority that signed its certificate."""

    server: ssl.SSLContext
    authority: str


def make_certificates(directory: Path) -> Certificates:
    """Make a certificate for 127.0.0.1, signed by an authority that no client knows."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stub")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    authority, private = directory / "authority.pem", directory / "key.pem"
    authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority, private)
    return Certificates(server, str(authority))
