"""A request and its caller, as the handlers see them, and the parser of query strings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from roost.api.http.errors import HttpError, OverLimit
from roost.api.http.microversions import MIN_VERSION, Microversion
from roost.metrics.stage_times import StageTimes
from roost.model.limits import Limits

if TYPE_CHECKING:
    from roost.api.observation.slow_requests import SearchAsked
    from roost.api.observation.tracing import RequestTrace

_LENGTH_DIGITS_MAX = 18
_SAFE_IN_PATHS = "/:@!$&'()*+,;=~"
# A path that quoting leaves as it is: almost every one, and a third of the time.
_is_plain = re.compile(r"[A-Za-z0-9/_.:~-]*").fullmatch
# The digit of a random UUID's variant, by the digit that it replaces. Its version is 4.
_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
_GLOBAL_ID = re.compile(r"req-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, as the policy sees it."""

    user: str | None = None
    project: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    domain: str | None = None
    # The domains to which the user and the project belong.
    user_domain: str | None = None
    project_domain: str | None = None
    # What only rules in policy files of operators ask for, such as the roles of a service token.
    attributes: tuple[tuple[str, Any], ...] = ()


_UNKNOWN_CALLER = Caller()
UNKNOWN_ROUTE = "unknown"


class Request:
    """One request: its parts, its caller, and whether it has written.

    Most requests change few of the values that the class has.
    """

    # The path of the route table, which is known after the caller is.
    route = UNKNOWN_ROUTE
    # Whether a program asks this every few seconds.
    is_probe = False
    # What the request searched, for the account of a slow search.
    search: SearchAsked | None = None
    # Where the candidates of its answer come from, and how many there are.
    candidates: tuple[str, int] | None = None
    # Why its answer has no candidates, if an operator or the client asks for it.
    reason: str | None = None
    trace: RequestTrace | None = None
    version: Microversion = MIN_VERSION
    # The version as the log names it; a dash until client and server have agreed on one.
    version_text = "-"
    # The version as metrics name it; `None` until the policy has admitted the request.
    version_label: str | None = None
    caller = _UNKNOWN_CALLER
    has_written = False
    # The variable parts of the path, by name.
    parameters: Mapping[str, str]
    _body: bytes | None = None

    def __init__(self, environ: dict[str, Any], limits: Limits) -> None:
        self.environ = environ
        self.began = perf_counter()
        self.times = StageTimes()
        self.id = _new_id()
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ.get("PATH_INFO", "")
        self.limits = limits

    def header(self, name: str) -> str | None:
        """The value of a header, if it was sent."""
        value: str | None = self.environ.get(_header_key(name))
        return value

    @property
    def is_extension(self) -> bool:
        """Whether the request is for a route of ours, which no microversion changes."""
        return self.path.startswith("/roost/")

    @property
    def content_type(self) -> str | None:
        """The media type of the body, without parameters; `None` if the client sent none."""
        value: str = self.environ.get("CONTENT_TYPE") or ""
        return value.split(";", maxsplit=1)[0].strip() or None

    @property
    def prefix(self) -> str:
        """The path at which the application is mounted: the beginning of every link."""
        name: str = self.environ.get("SCRIPT_NAME", "")
        return quote(name.encode("latin-1")).rstrip("/") if name else ""

    @property
    def quoted_path(self) -> str:
        """The path for a line of the log: quoted again, so that a line feed in it is none there."""
        path = self.path
        if _is_plain(path) is None:
            path = quote(path.encode("latin-1"), safe=_SAFE_IN_PATHS)
        return self.prefix + path

    @property
    def global_id(self) -> str | None:
        """The id that a client gave to its whole operation."""
        value = self.header("x-openstack-request-id")
        return value if value and _GLOBAL_ID.match(value) else None

    def at_least(self, major: int, minor: int) -> bool:
        """Whether the request has this microversion or a later one."""
        return self.version >= (major, minor)

    def location(self, path: str) -> str:
        """The absolute URL of a path of this service."""
        host = self.environ.get("HTTP_HOST") or (
            f"{self.environ['SERVER_NAME']}:{self.environ['SERVER_PORT']}"
        )
        return f"{self.environ['wsgi.url_scheme']}://{host}{self.prefix}{path}"

    def receive(self) -> None:
        """Read a body of bounded size, even if the answer does not need it.

        A server closes a connection on which a part of a request is unread. The client then loses
        its next request.
        """
        if self._length or "HTTP_TRANSFER_ENCODING" in self.environ:
            with suppress(HttpError):
                self.body()

    def body(self) -> bytes:
        """The whole body; 413 if it is larger than the limit."""
        maximum = self.limits.max_body_bytes
        length = self._length
        if length > maximum:
            raise _too_large(maximum)
        if self._body is None:
            self._body = self.environ["wsgi.input"].read(length or maximum + 1)
        if len(self._body) > maximum:
            raise _too_large(maximum)
        if len(self._body) < length:
            raise HttpError(
                400, f"The body ended after {len(self._body)} of {length} bytes; nothing was done."
            )
        return self._body

    @property
    def _length(self) -> int:
        """The length in the headers; 0 if there is none, or if it is no number."""
        text = self.environ.get("CONTENT_LENGTH")
        return int(text) if text and is_length(text) else 0

    def query(self) -> list[tuple[str, str]]:
        """The query string as pairs, in its order; 400 if it is too long or not UTF-8."""
        return parse_query_string(
            self.environ.get("QUERY_STRING", ""), self.limits.max_query_parameters
        )


@lru_cache
def _header_key(name: str) -> str:
    """The key of a header in WSGI. The names are those that this package asks for."""
    return "HTTP_" + name.upper().replace("-", "_")


def _new_id() -> str:
    """A fresh request id: `req-` and a random UUID, which the `uuid` module makes more slowly."""
    digits = os.urandom(16).hex()
    return (
        f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}"
        f"-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"
    )


def is_length(text: str) -> bool:
    """Whether the value of a `Content-Length` header can be one.

    >>> is_length("12"), is_length("-1"), is_length("9" * 19)
    (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= _LENGTH_DIGITS_MAX


def parse_query_string(raw: str, maximum: int) -> list[tuple[str, str]]:
    """The pairs of a query string from WSGI; 400 if they are too many or not UTF-8.

    The separator is `&` or `;`.

    >>> parse_query_string("limit=1;required=%3B&resources", 3)
    [('limit', '1'), ('required', ';'), ('resources', '')]
    """
    count = raw.count("&") + raw.count(";") + 1
    if count > maximum:
        raise OverLimit(
            400,
            f"Invalid query string parameters: {count} parameters are more than the {maximum} that "
            "a query may have ([roost]max_query_parameters). Ask for less at a time.",
            "max_query_parameters",
        )
    try:
        text = raw.encode("latin-1").decode("utf-8").replace(";", "&")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except ValueError:
        raise HttpError(
            400, "Invalid query string parameters: the query string is not UTF-8."
        ) from None
    for key, value in pairs:
        if "\0" in key or "\0" in value:
            raise HttpError(400, f"Invalid query string parameters: NUL character in {key!r}.")
    return pairs


def _too_large(maximum: int) -> HttpError:
    return OverLimit(
        413,
        f"A body may have {maximum} bytes ([roost]max_body_bytes). Split the request into several.",
        "max_body_bytes",
    )
