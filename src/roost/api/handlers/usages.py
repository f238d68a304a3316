"""`/usages`."""

from __future__ import annotations

from typing import Any

from roost.api.http.json_schemas import (
    AMOUNTS,
    CLASS_NAME,
    COUNT,
    EXAMPLE_PROJECT,
    EXAMPLE_USER,
    EXTERNAL_ID,
    AnswerSchema,
    Document,
    described,
    integer,
    record,
    text,
)
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import Response, cached_json, now
from roost.api.routing import CACHED, QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.service.tables.allocations import list_project_usages, list_project_usages_by_type

_QUERY = QueryString.of(
    RequestParameter("project_id", "The project.", EXAMPLE_PROJECT, EXTERNAL_ID, is_required=True),
    RequestParameter("user_id", "Only consumers of this user.", EXAMPLE_USER, EXTERNAL_ID),
    RequestParameter(
        "consumer_type",
        "Only consumers of this type. `unknown`: those without a type. `all`: one sum over all "
        "types.",
        "INSTANCE",
        text("^[A-Z0-9_]+$|^all$|^unknown$", minimum=1, maximum=255),
        since=Microversion(1, 38),
    ),
)
_BY_TYPE: Document = {
    "type": "object",
    "description": "By consumer type; `unknown` for consumers without a type.",
    "additionalProperties": {
        "type": "object",
        "properties": {"consumer_count": described(integer(1), "The number of consumers.")},
        "required": ["consumer_count"],
        "patternProperties": {CLASS_NAME: COUNT},
        "additionalProperties": False,
    },
}
_USAGES = AnswerSchema(
    "Usages",
    "What the consumers of a project hold, by resource class; from 1.38 on by consumer type.",
    ("1.9", record({"usages": AMOUNTS})),
    ("1.38", record({"usages": _BY_TYPE})),
)


def target_project(request: Request) -> str | None:
    """The project in the query, which the policy needs before the query is checked."""
    return dict(request.query()).get("project_id")


@Route(
    "GET",
    "/usages",
    rule="placement:usages",
    rule_default="rule:admin_or_project_reader_or_service_api",
    target_project=target_project,
    summary="Show what a project uses",
    successes={200: Success("The usages.", _USAGES, CACHED)},
    refusals={400: "A parameter is unknown or malformed, or the project is missing."},
    queries=(_QUERY,),
)
def show_usages(services: Services, request: Request) -> Response:
    """The sums over all consumers of a project. Readers of a project may see their own."""
    values = _QUERY.parse(request)
    project, user = values["project_id"], values.get("user_id")
    if request.at_least(1, 38):
        found = services.read(
            list_project_usages_by_type, project, user, values.get("consumer_type")
        )
        body: dict[str, Any] = {
            "usages": {
                group.consumer_type: {"consumer_count": group.consumer_count, **group.resources}
                for group in found
            }
        }
    else:
        body = {"usages": dict(services.read(list_project_usages, project, user))}
    return cached_json(request, body, now())


ROUTES = routes_of("Allocations", show_usages, since=Microversion(1, 9))
