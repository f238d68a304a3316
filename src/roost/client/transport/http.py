"""Requests over plain HTTP or HTTPS, with a token that is given and never renewed."""

from __future__ import annotations

import math
import ssl
import time
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from roost import __version__
from roost.client.errors import (
    AnswerLost,
    NotConfigured,
    PlacementAPIConnectFailure,
    TransportFailed,
)
from roost.client.transport.messages import REQUEST_ID, Request, Response
from roost.client.transport.retrying import RetryingTransport, RetryPolicy

KEPT_CONNECTIONS = 16

IDLE_SECONDS = 1.0
"""How long a connection may have been idle to be used again.

Servers close idle connections, some after two seconds. urllib3 notices when that has happened,
but not when it happens while the request is under way: then nobody can tell whether a claim was
carried out. A new connection costs less than that doubt.
"""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, and for the next bytes of an answer."""

    connect: float = 5.0
    read: float = 60.0

    def __post_init__(self) -> None:
        for name, seconds in (("connect", self.connect), ("read", self.read)):
            if not (seconds > 0 and math.isfinite(seconds)):
                raise NotConfigured(
                    f"the {name} timeout is {seconds}: it must be a number of seconds above 0"
                )

    @classmethod
    def of(cls, timeout: Timeouts | float | None) -> Timeouts:
        """What is meant: one number is for both, nothing for the defaults."""
        if timeout is None:
            return cls()
        return timeout if isinstance(timeout, Timeouts) else cls(timeout, timeout)


class HttpTransport(RetryingTransport):
    """Talks to the server at a URL, which may have a path before those of the API.

    Connections are kept and shared by threads. Proxies that the environment names are not used.
    Without `ca_file` the certificate authorities of the system are trusted; `insecure` trusts
    any certificate.
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
        timeouts = Timeouts.of(timeout)
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

    def close(self) -> None:
        """Close the connections that are kept; the next request would open one anew."""
        # There is one pool, that of this server. `clear` alone would leave the closing to the
        # garbage collector.
        self._pools.connection_from_url(self._url).close()
        self._pools.clear()

    def _headers(self, request: Request) -> dict[str, str]:
        headers = super()._headers(request) | {"User-Agent": f"roost/{__version__}"}
        if self._token is not None:
            headers["X-Auth-Token"] = self._token
        return headers

    def _attempt(self, request: Request) -> Response:
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

    def _read(self, answer: BaseHTTPResponse) -> Response:
        headers = {name.lower(): value for name, value in answer.headers.itermerged()}
        try:
            content = answer.read()
        except HTTPError as error:
            raise AnswerLost(
                f"the answer of {self} broke off",
                detail=_reason(error),
                request_id=headers.get(REQUEST_ID),
            ) from error
        return Response(answer.status, headers, content)

    def _not_connected(self, error: _NotConnected) -> TransportFailed | NotConfigured:
        cause = error.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotConfigured(
                f"the certificate of {self} is not trusted; name the file of its certificate "
                "authority as CA file",
                detail=cause.verify_message,
            )
        return PlacementAPIConnectFailure(
            f"no connection to {self} could be made", detail=str(error)
        )


class _NotConnected(HTTPError):
    """A connection could not be made, whatever the reason: nothing was sent."""


class _Connection(HTTPConnection):
    """Tells failures to connect from all others, and does not outstay its welcome.

    urllib3 reports a TLS handshake that fails or takes too long as it reports an answer that
    does, so the difference must be noted where it is made.
    """

    _last_used = 0.0

    def connect(self) -> None:
        try:
            super().connect()
        except (HTTPError, OSError) as error:
            raise _NotConnected(_reason(error)) from error
        self._last_used = time.monotonic()

    # urllib3 declares the response of the standard library's base class, and returns its own.
    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        response = super().getresponse()
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
    """The innermost cause in its own words: those around it name objects of the library."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, HTTPError) and error.args and isinstance(error.args[-1], Exception):
        error = error.args[-1]
    return str(error) or type(error).__name__


def server_url(url: str) -> str:
    """The URL without slash at its end, if requests can be sent there.

    >>> server_url("http://controller/placement/")
    'http://controller/placement'
    """
    parts = http_address(url)
    if parts.username is not None:
        raise NotConfigured(
            f"the URL of {parts.hostname} contains a user or a password, which are not sent; "
            "give a token instead, or use auth_type http_basic in clouds.yaml"
        )
    if parts.query or parts.fragment:
        raise NotConfigured(f"the URL {without_user(url)!r} must end before its '?' or '#'")
    return parts.geturl().rstrip("/")


def http_address(url: str) -> SplitResult:
    """The parts of a URL, if it is the address of something that speaks HTTP."""
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
        raise NotConfigured(f"the URL {shown!r} has a space in it")
    return parts


def without_user(url: str) -> str:
    """The URL as it may be shown to anybody.

    >>> without_user("http://admin:secret@controller/identity")
    '...@controller/identity'
    """
    _, sign, rest = url.rpartition("@")
    return f"...@{rest}" if sign else url


def checked_token(token: str | None) -> str | None:
    """The token, if a header can hold it."""
    if token is None or (token and token.isascii() and token.isprintable()):
        return token
    raise NotConfigured(
        "the token is empty or has characters that no token has; look for a line break at its end"
    )


def trusting(ca_file: str | None, insecure: bool) -> ssl.SSLContext:
    """How certificates are judged."""
    if insecure and ca_file is not None:
        raise NotConfigured(
            f"either certificates are judged by {ca_file} or not at all (insecure), not both"
        )
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise NotConfigured(
            f"the CA file {ca_file} cannot be used; it must hold certificates in PEM form",
            detail=str(error),
        ) from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
