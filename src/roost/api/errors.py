"""What a client reads when something went wrong. Domain errors become statuses here, once."""

from __future__ import annotations

import html
import re
from http import HTTPStatus
from typing import Any

import orjson

from roost.api.accept import error_media_type
from roost.service.errors import Conflict, DomainError, ErrorCode, Invalid, NotFound

# What every detail begins with. Clients look for the sentences of 404 and 405.
_GENERAL = {
    400: "The request cannot be carried out as it is.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    406: "The response is not available in a form that the request accepts.",
    409: "The request conflicts with the present state of the resource.",
    413: "The body of the request is too large.",
    415: "The request's body is of a media type that is not supported.",
    500: "The server failed to carry out the request. This is a defect: please report it.",
    503: "The service cannot answer at the moment. Please try again.",
}
_TAGS = re.compile(r"<[^<>]*>")


class HttpError(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        text: str = "",
        code: ErrorCode = ErrorCode.UNDEFINED,
        *,
        general: str | None = None,
        extra: dict[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.general = general or _GENERAL[status]
        self.extra = extra or {}
        self.headers = headers

    @property
    def detail(self) -> str:
        """The general sentence, then the specific one, on one line of its own."""
        specific = _TAGS.sub("", self.text.replace("\n", " "))
        return f"{self.general}\n\n {specific}  "


_STATUS: tuple[tuple[type[DomainError], int], ...] = (
    (NotFound, 404),
    (Invalid, 400),
    (Conflict, 409),
)


def from_domain_error(error: DomainError) -> HttpError:
    """The answer to a request that the use cases refused."""
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    return HttpError(status, error.message, error.code)


def method_not_allowed(method: str, allow: str | None, text: str = "") -> HttpError:
    """405, naming the method; with `allow` if the path knows other ones."""
    return HttpError(
        405,
        text,
        general=f"The method {method} is not allowed for this resource.",
        headers=(("allow", allow),) if allow else (),
    )


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
    body: dict[str, Any] = {"status": error.status, "title": title, "detail": error.detail}
    if with_code:
        body["code"] = error.code.value
    body["request_id"] = request_id
    return "application/json", orjson.dumps({"errors": [body | error.extra]})
