"""Requests over HTTP or HTTPS to a URL, with a fixed token.

A server that never ends its answer would take all memory of the client, or hold it for ever. So
the body of an answer is read up to a bound of bytes and seconds.
"""

from __future__ import annotations

import io
import ipaddress
import math
import socket
import ssl
import time
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any
from urllib.parse import SplitResult, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from roost import __version__
from roost.client.errors import (
    AnswerLost,
    AnswerRefused,
    NotConfigured,
    PlacementAPIConnectFailure,
    TransportFailed,
)
from roost.client.transport.messages import (
    REQUEST_ID,
    PlacementRequest,
    PlacementResponse,
    ServerAddress,
)
from roost.client.transport.retrying import RetryingTransport, RetryPolicy

ANSWER_BYTES = 512 * 2**20
"""How large an answer may be. 100,000 candidates with their summaries have 20 to 300 MiB."""
ANSWER_SECONDS = 600.0
"""How long an answer may take, from the end of the request to its own end."""
_PART_BYTES = 2**18

KEPT_CONNECTIONS = 16

_PLAIN_TEXT = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
"""The reasons of OpenSSL for an answer without TLS."""
NO_TLS = "it does not speak TLS; write http:// if that is meant"

IDLE_SECONDS = 1.0
"""After how many idle seconds the transport opens a new connection.

Servers close idle connections, some after two seconds. urllib3 notices a closed connection, but
not one that closes while the request is under way. The client cannot know then whether the server
has carried out a claim. A new connection is the lower cost.
"""


def answer_seconds(read_seconds: float) -> float:
    """How long an answer may take, if the client waits so long for its next bytes."""
    return max(ANSWER_SECONDS, read_seconds)


def read_body(answer: BaseHTTPResponse, server: object, until: float) -> bytes:
    """The body of an answer of this server.

    `AnswerRefused` if the body is too large, does not end until this time of the clock, or has an
    encoding: the client asks for none. Errors of urllib3 pass.
    """
    try:
        return _read(answer, server, until)
    except BaseException:
        # The rest of the body is still under way, so nothing else can use the connection.
        answer.close()
        raise


def _read(answer: BaseHTTPResponse, server: object, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    if (getattr(answer, "length_remaining", None) or 0) > ANSWER_BYTES:
        raise _too_large(server)
    # `read1` returns what has come, and does not wait until there is as much.
    while part := answer.read1(_PART_BYTES, decode_content=False):
        if not parts:
            _check_encoding(answer, server)
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES:
            raise _too_large(server)
        if time.monotonic() >= until:
            raise AnswerRefused(f"the answer of {server} does not end; is the address right?")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_encoding(answer: BaseHTTPResponse, server: object) -> None:
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise AnswerRefused(
            f"the answer of {server} has the encoding {encoding[:40]!r}, which the client did not "
            "ask for; is there a proxy that compresses answers?"
        )


def _too_large(server: object) -> AnswerRefused:
    return AnswerRefused(
        f"the answer of {server} is larger than {ANSWER_BYTES // 2**20} MiB; ask for less at a time"
    )


class BoundedResponse(HTTPResponse):
    """A response whose bytes, those of its headers included, all come before a deadline."""

    def __init__(self, sock: socket.socket, *arguments: Any, seconds: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        raw = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_UntilDeadline(raw, time.monotonic() + seconds))


class _UntilDeadline(io.RawIOBase):
    """A file that ends with `TimeoutError` at a deadline."""

    def __init__(self, raw: io.RawIOBase, until: float) -> None:
        self._raw = raw
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() >= self._until:
            raise TimeoutError("the answer does not end")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, and for the next bytes of an answer."""

    connect: float = 5.0
    read: float = 60.0

    @property
    def answer(self) -> float:
        """Seconds in which an answer must end."""
        return answer_seconds(self.read)

    def __post_init__(self) -> None:
        for name, seconds in (("connect", self.connect), ("read", self.read)):
            if not (seconds > 0 and math.isfinite(seconds)):
                raise NotConfigured(
                    f"the {name} timeout is {seconds}: it must be a number of seconds above 0"
                )

    @classmethod
    def of(cls, timeout: Timeouts | float | None) -> Timeouts:
        """The timeouts: a number is for both, `None` for the defaults."""
        if timeout is None:
            return cls()
        return timeout if isinstance(timeout, Timeouts) else cls(timeout, timeout)


class HttpTransport(RetryingTransport):
    """Talks to the server at a URL, which may end in a path such as `/placement`.

    Threads share the open connections. The transport ignores the proxies of the environment.
    Without `ca_file` it trusts the certificate authorities of the system; with `insecure` it
    trusts any certificate.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: Timeouts | float | None = None,
        ca_file: str | None = None,
        insecure: bool = False,
        global_request_id: str | None = None,
        retries: RetryPolicy | None = None,
    ) -> None:
        super().__init__(retries=retries, global_request_id=global_request_id)
        self._url = server_url(url)
        self._token = checked_token(token)
        self._timeouts = timeouts = Timeouts.of(timeout)
        context = trusting(ca_file, insecure) if self._url.startswith("https:") else None
        self._pools = urllib3.PoolManager(
            maxsize=KEPT_CONNECTIONS,
            timeout=urllib3.Timeout(connect=timeouts.connect, read=timeouts.read),
            ssl_context=context,
        )
        self._pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def describe(self) -> str:
        """The URL."""
        return self._url

    def address(self) -> ServerAddress:
        """The URL, in one spelling."""
        return ServerAddress(canonical_url(self._url))

    def close(self) -> None:
        """Close the open connections; a later request opens a new one."""
        # `clear` alone leaves the closing of the one pool to the garbage collector.
        self._pools.connection_from_url(self._url).close()
        self._pools.clear()

    def _headers(self, request: PlacementRequest) -> dict[str, str]:
        headers = super()._headers(request) | {"User-Agent": f"roost/{__version__}"}
        if self._token is not None:
            headers["X-Auth-Token"] = self._token
        return headers

    def _attempt(self, request: PlacementRequest) -> PlacementResponse:
        try:
            answer = self._pools.request(
                request.method,
                self._url + request.path,
                body=request.content(),
                headers=self._headers(request),
                redirect=False,
                retries=False,
                preload_content=False,
            )
        except _NotConnected as error:
            raise self._not_connected(error) from error.__cause__
        except HTTPError as error:
            raise AnswerLost(f"no answer came from {self}", detail=_reason(error)) from error
        return self._read(answer)

    def _read(self, answer: BaseHTTPResponse) -> PlacementResponse:
        headers = {name.lower(): value for name, value in answer.headers.itermerged()}
        try:
            content = read_body(answer, self, time.monotonic() + self._timeouts.answer)
        except HTTPError as error:
            raise AnswerLost(
                f"the answer of {self} broke off",
                detail=_reason(error),
                request_id=headers.get(REQUEST_ID),
            ) from error
        return PlacementResponse(answer.status, headers, content)

    def _not_connected(self, error: _NotConnected) -> TransportFailed | NotConfigured:
        cause = error.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotConfigured(
                f"the certificate of {self} is not trusted; name the file of its certificate "
                "authority as CA file (--cacert)",
                detail=cause.verify_message,
            )
        return PlacementAPIConnectFailure(
            f"no connection to {self} could be made", detail=str(error)
        )


class _NotConnected(HTTPError):
    """No connection could be made, and so the request was not sent."""


class _Connection(HTTPConnection):
    """A connection whose failure to connect is a `_NotConnected`, and which knows its idle time.

    urllib3 reports a failed or slow TLS handshake like a failed or slow answer. Only `connect`
    can tell them apart.
    """

    _last_used = 0.0
    _begun: BoundedResponse | None = None

    def connect(self) -> None:
        try:
            super().connect()
        except (HTTPError, OSError) as error:
            raise _NotConnected(_reason(error)) from error
        self._last_used = time.monotonic()

    # The standard library declares an attribute with a class, and only calls it.
    def response_class(  # type: ignore[override]
        self, *arguments: Any, **named: Any
    ) -> BoundedResponse:
        """The response to the last request."""
        assert isinstance(self.timeout, int | float)
        seconds = answer_seconds(self.timeout)
        self._begun = BoundedResponse(*arguments, seconds=seconds, **named)
        return self._begun

    # urllib3 declares the response of its base class in the standard library, and returns its own.
    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        try:
            response = super().getresponse()
        except BaseException:
            # urllib3 leaves a response open whose headers contradict each other.
            if self._begun is not None:
                self._begun.close()
            raise
        self._last_used = time.monotonic()
        return response

    @property
    def is_connected(self) -> bool:
        return time.monotonic() - self._last_used < IDLE_SECONDS and super().is_connected


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def _reason(error: BaseException) -> str:
    """The text of the innermost cause; the outer errors name objects of urllib3."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, HTTPError) and error.args and isinstance(error.args[-1], Exception):
        error = error.args[-1]
    return in_words(error)


def in_words(error: BaseException) -> str:
    """The text of an error, without its number.

    >>> in_words(ConnectionRefusedError(111, "Connection refused"))
    'Connection refused'
    """
    if isinstance(error, ssl.SSLError) and error.reason in _PLAIN_TEXT:
        return NO_TLS
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def server_url(url: str) -> str:
    """The URL without a slash at its end, if it is the URL of a server.

    >>> server_url("http://controller/placement/")
    'http://controller/placement'
    """
    parts = http_address(url)
    if parts.username is not None:
        raise NotConfigured(
            f"the URL of {parts.hostname} contains a user or a password, which the client does not "
            "send; give a token instead, or use auth_type http_basic in clouds.yaml"
        )
    if parts.query or parts.fragment:
        raise NotConfigured(
            f"the URL {without_user(url)!r} has a query or a fragment; end it before '?' or '#'"
        )
    return parts.geturl().rstrip("/")


def canonical_url(url: str) -> str:
    """The URL of a server in one spelling, without user and password.

    >>> canonical_url("HTTP://LocalHost:8778/"), canonical_url("https://k.example:443/placement")
    ('http://localhost:8778', 'https://k.example/placement')
    >>> canonical_url("http://127.0.0.1:8778"), canonical_url("http://[::1]")
    ('http://localhost:8778', 'http://localhost')
    """
    parts = http_address(url)
    host = parts.hostname or ""
    if _is_loopback_address(host):
        host = "localhost"
    elif ":" in host:
        host = f"[{host}]"
    default = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _is_loopback_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_address(url: str) -> SplitResult:
    """The parts of a URL, if it is an HTTP address."""
    shown = without_user(url)
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise NotConfigured(f"the URL {shown!r} cannot be read", detail=str(error)) from error
    if parts.scheme not in ("http", "https"):
        raise NotConfigured(
            f"the URL {shown!r} does not begin with http:// or https://; "
            "write for instance http://127.0.0.1:8778"
        )
    if not parts.hostname:
        raise NotConfigured(f"the URL {shown!r} names no host; write for instance http://host:8778")
    if any(character.isspace() for character in url.strip()):
        raise NotConfigured(f"the URL {shown!r} contains a space; remove it")
    return parts


def without_user(url: str) -> str:
    """The URL without user and password, for messages.

    >>> without_user("http://admin:secret@controller/identity")
    '...@controller/identity'
    """
    _, sign, rest = url.rpartition("@")
    return f"...@{rest}" if sign else url


def checked_token(token: str | None) -> str | None:
    """The token, if a header can contain it."""
    if token is None or (token and token.isascii() and token.isprintable()):
        return token
    raise NotConfigured(
        "the token is empty or has unprintable characters; look for a line break at its end"
    )


def trusting(ca_file: str | None, insecure: bool) -> ssl.SSLContext:
    """The TLS context that checks certificates as the options say."""
    if insecure and ca_file is not None:
        raise NotConfigured(
            f"a CA file ({ca_file}) and insecure exclude each other; give one of them"
        )
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise NotConfigured(
            f"the CA file {ca_file} cannot be used; it must contain certificates as PEM",
            detail=str(error),
        ) from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
