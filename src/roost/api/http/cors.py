"""Cross-origin requests: the sites whose pages may use the API in a browser."""

from __future__ import annotations

from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.configuration.settings import CorsSettings

# Headers that browsers send without a preflight.
_SIMPLE = frozenset({
    "accept", "accept-language", "content-type", "cache-control", "content-language", "expires",
    "last-modified", "pragma",
})  # fmt: skip


class Cors:
    """Answers preflights, and marks the responses that pages of allowed origins may read."""

    def __init__(self, settings: CorsSettings) -> None:
        self._settings = settings
        self._headers = {name.lower() for name in settings.allow_headers} | _SIMPLE

    def preflight(self, request: Request) -> Response:
        """The answer to any OPTIONS request. It grants all that the request wants, or nothing."""
        response = Response(200)
        origin = request.header("origin")
        method = request.header("access-control-request-method")
        if not self._allowed(origin) or method not in self._settings.allow_methods:
            return response
        asked = request.header("access-control-request-headers") or ""
        names = [name.strip() for name in asked.split(",") if name.strip()]
        if any(name.lower() not in self._headers for name in names):
            return response
        self._grant(response, str(origin))
        response.headers += [
            ("access-control-max-age", str(self._settings.max_age_seconds)),
            ("access-control-allow-methods", str(method)),
        ]
        if names:
            response.headers.append(("access-control-allow-headers", ",".join(names)))
        return response

    def mark(self, request: Request, response: Response) -> None:
        """Add the headers that let the page read the response, if its origin is allowed."""
        origin = request.header("origin")
        if not self._allowed(origin):
            return
        self._grant(response, str(origin))
        if self._settings.expose_headers:
            exposed = ",".join(self._settings.expose_headers)
            response.headers.append(("access-control-expose-headers", exposed))

    def _allowed(self, origin: str | None) -> bool:
        origins = self._settings.allowed_origins
        return origin is not None and (origin in origins or "*" in origins)

    def _grant(self, response: Response, origin: str) -> None:
        if origin in self._settings.allowed_origins:
            response.headers.append(("access-control-allow-origin", origin))
            if self._settings.allow_credentials:
                response.headers.append(("access-control-allow-credentials", "true"))
        else:
            # Any origin, without the credentials of a user.
            response.headers.append(("access-control-allow-origin", "*"))
        vary = [value for name, value in response.headers if name == "vary"]
        response.headers = [pair for pair in response.headers if pair[0] != "vary"]
        response.headers.append(("vary", ",".join([*vary, "Origin"])))
