"""`/healthz` and `/readyz`, for programs that restart processes or choose servers."""

from __future__ import annotations

import roost
from roost.api.http.json_schemas import SENTENCE, STRING, AnswerSchema, choice, members
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import Route, Success
from roost.api.services import Services

_ALIVE = {"status": "alive", "version": roost.__version__}
_NOT_CACHED = ("cache-control", "no-store")

_HEALTH = AnswerSchema.of(
    "Health",
    "The process answers.",
    members({"status": choice("alive"), "version": STRING}),
    example={"status": "alive", "version": "0.1.0"},
)
_READINESS = AnswerSchema.of(
    "Readiness",
    "Whether the process can answer requests, and each check up to the first that failed.",
    members(
        {
            "status": choice("ready", "not ready"),
            "version": STRING,
            "checks": {
                "type": "object",
                "additionalProperties": members(
                    {
                        "ok": {"type": "boolean"},
                        "text": SENTENCE,
                        "seconds": {"type": "number"},
                    }
                ),
            },
        }
    ),
    example={
        "status": "ready",
        "version": "0.1.0",
        "checks": {"database": {"ok": True, "text": "It answers.", "seconds": 0.0004}},
    },
)


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


ROUTES = (
    Route(
        "GET",
        "/healthz",
        alive,
        rule=None,
        is_probe=True,
        id="show_health",
        tag="Operating",
        summary="Look whether the process lives",
        text="The process answers, without a look at the database.",
        successes={200: Success("The process lives.", _HEALTH)},
    ),
    Route(
        "GET",
        "/readyz",
        ready,
        rule=None,
        is_probe=True,
        id="show_readiness",
        tag="Operating",
        summary="Look whether the process can answer requests",
        text=(
            "Checks the database, its schema and the forest. All clients of a second share one "
            "answer."
        ),
        successes={
            200: Success("The process can answer requests.", _READINESS),
            503: Success("The process cannot answer requests now.", _READINESS),
        },
    ),
)
