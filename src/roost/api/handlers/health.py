"""`/healthz` and `/readyz`, for programs that restart processes or choose servers."""

from __future__ import annotations

import roost
from roost.api.http.json_schemas import SENTENCE, STRING, AnswerSchema, choice, members
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import Route, Success, routes_of
from roost.api.services import Services

_ALIVE = {"status": "alive", "version": roost.__version__}
_NOT_CACHED = ("cache-control", "no-store")

_HEALTH = AnswerSchema.of(
    "Health",
    "The process answers.",
    members({"status": choice("alive"), "version": STRING}),
)
_READINESS = AnswerSchema.of(
    "Readiness",
    "Whether the process can answer requests, and each check up to the first that failed.",
    members(
        status=choice("ready", "not ready"),
        version=STRING,
        checks={
            "type": "object",
            "additionalProperties": members(
                ok={"type": "boolean"},
                text=SENTENCE,
                seconds={"type": "number"},
            ),
        },
    ),
)


@Route(
    "GET",
    "/healthz",
    rule=None,
    is_probe=True,
    summary="Look whether the process lives",
    successes={200: Success("The process lives.", _HEALTH)},
)
def show_health(_services: Services, _request: Request) -> Response:
    """The process answers, without a look at the database."""
    return _fresh(json_response(_ALIVE))


@Route(
    "GET",
    "/readyz",
    rule=None,
    is_probe=True,
    summary="Look whether the process can answer requests",
    successes={
        200: Success("The process can answer requests.", _READINESS),
        503: Success("The process cannot answer requests now.", _READINESS),
    },
)
def show_readiness(services: Services, request: Request) -> Response:
    """Check the database, its schema and the forest. All clients of a second share one answer."""
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


ROUTES = routes_of("Operating", show_health, show_readiness)
