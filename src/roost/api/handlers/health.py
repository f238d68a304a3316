"""`/healthz` and `/readyz`, for programs that restart processes or choose servers."""

from __future__ import annotations

import roost
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services

_ALIVE = {"status": "alive", "version": roost.__version__}
_NOT_CACHED = ("cache-control", "no-store")


def alive(_services: Services, _request: Request) -> Response:
    """The process answers. It asks no database."""
    return _fresh(json_response(_ALIVE))


def ready(services: Services, request: Request) -> Response:
    """Whether this process can answer requests of clients now; each check with its reason."""
    is_stopping = request.environ.get("roost.is_stopping")
    readiness = services.readiness.look(stops=is_stopping is not None and is_stopping())
    body = {
        "status": "ready" if readiness.is_ready else "not ready",
        "version": roost.__version__,
        "checks": {
            check.name: {"ok": check.ok, "text": check.text, "seconds": round(check.seconds, 6)}
            for check in readiness.checks
        },
    }
    return _fresh(json_response(body, 200 if readiness.is_ready else 503))


def _fresh(response: Response) -> Response:
    response.headers.append(_NOT_CACHED)
    return response
