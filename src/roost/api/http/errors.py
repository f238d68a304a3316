"""Errors in HTTP: status, sentences and body. Here a domain error becomes a status."""

from __future__ import annotations

import html
import re
from http import HTTPStatus
from typing import Any

import orjson

from roost.api.http.accept import error_media_type
from roost.service.errors import Conflict, DomainError, ErrorCode, Invalid, NotFound

# The beginning of every detail, in the words of the reference, because clients match on them.
_GENERAL = {
    400: (
        "The server could not comply with the request since it is either malformed or otherwise "
        "incorrect."
    ),
    401: (
        "This server could not verify that you are authorized to access the document you "
        "requested. Either you supplied the wrong credentials (e.g., bad password), or your "
        "browser does not understand how to supply the credentials required."
    ),
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    # Three sentences name the method or the media type of the request, and end with a space.
    405: "The method {} is not allowed for this resource. ",
    406: (
        "The resource could not be generated that was acceptable to your browser "
        "(content of type {}. "
    ),
    409: "There was a conflict when trying to complete your request.",
    410: "The resource is no longer available.",
    413: "The body of your request was too large for this server.",
    415: "The request media type {} is not supported by this server. ",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
_TAGS = re.compile(r"<[^<>]*>")


class HttpError(Exception):
    """An answer with an error status."""

    may_pass = True
    """Whether the same request may succeed a little later, if the status is 503."""

    def __init__(
        self,
        status: int,
        text: str = "",
        code: ErrorCode = ErrorCode.UNDEFINED,
        *,
        named: str | None = None,
        extra: dict[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.named = named
        self.extra = extra or {}
        self.headers = headers

    @property
    def general(self) -> str:
        """The sentence for the status, with its method or media type."""
        sentence = _GENERAL[self.status]
        return sentence if self.named is None else sentence.format(self.named)

    @property
    def detail(self) -> str:
        """The general sentence, then the specific one on one line."""
        specific = self.text.replace("\n", " ")
        ending = "  " if self.named is None else ""
        return _TAGS.sub("", f"{self.general}\n\n {specific}{ending}")


class OverLimit(HttpError):
    """A request beyond a limit. The log tells that, too."""

    def __init__(
        self,
        status: int,
        text: str,
        limit: str,
        code: ErrorCode = ErrorCode.UNDEFINED,
        *,
        may_pass: bool = True,
    ) -> None:
        super().__init__(status, text, code)
        # What the log counts such requests by: the option of the limit, for example.
        self.limit = limit
        self.may_pass = may_pass


_STATUS: tuple[tuple[type[DomainError], int], ...] = (
    (NotFound, 404),
    (Invalid, 400),
    (Conflict, 409),
)


def from_domain_error(error: DomainError) -> HttpError:
    """The answer to a request that a use case refused."""
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    return HttpError(status, error.message, error.code)


def bad_value(sentence: str) -> HttpError:
    """400 for a value in a query string, or in the body of a route of ours."""
    return HttpError(400, sentence, ErrorCode.QUERY_BAD_VALUE)


def sent_twice(name: str) -> HttpError:
    """400 for a parameter of ours that has one value."""
    return HttpError(400, f"{name} may be sent once. Leave one out.", ErrorCode.QUERY_DUPLICATE_KEY)


def method_not_allowed(method: str, allow: str | None, text: str = "") -> HttpError:
    """405 with the name of the method, and with the `allow` header if there is one."""
    return HttpError(405, text, named=method, headers=(("allow", allow),) if allow else ())


def not_acceptable(accept: str | None, text: str, **extra: str) -> HttpError:
    """406 with the media types that the client accepts."""
    wanted = (accept or "").strip()
    return HttpError(
        406, text, named=wanted if wanted not in ("", "*/*") else "application/json", extra=extra
    )


def unsupported_media_type(content_type: str, text: str) -> HttpError:
    """415 with the media type of the body."""
    return HttpError(415, text, named=content_type)


def render(
    error: HttpError, accept: str | None, request_id: str, with_code: bool
) -> tuple[str, bytes]:
    """Content type and body of an error, in the form that the client wants."""
    title = HTTPStatus(error.status).phrase
    media_type = error_media_type(accept)
    if media_type == "text/html":
        heading = f"{error.status} {title}"
        page = (
            f"<!DOCTYPE html>\n<html><head><title>{heading}</title></head>\n"
            f"<body><h1>{heading}</h1><p>{html.escape(error.general)}</p>"
            f"<p>{html.escape(error.text)}</p></body></html>\n"
        )
        return "text/html; charset=UTF-8", page.encode("utf-8", "replace")
    if media_type == "text/plain":
        text = f"{error.status} {title}\n\n{error.detail}"
        return "text/plain; charset=UTF-8", text.encode("utf-8", "replace")
    if error.status == 401:
        # In the reference, the form of this error differs from that of all other errors.
        refusal = {"message": error.detail, "code": f"401 {title}", "title": title}
        return "application/json", orjson.dumps(refusal)
    body: dict[str, Any] = {"status": error.status, "title": title, "detail": error.detail}
    if with_code:
        body["code"] = error.code.value
    body["request_id"] = request_id
    return "application/json", orjson.dumps({"errors": [body | error.extra]})
