"""`/usages`."""

from __future__ import annotations

from typing import Any

from roost.api.requests import Request
from roost.api.responses import Response, json_response, now, with_cache_headers
from roost.api.schemas import usages as schemas
from roost.api.services import Services
from roost.api.validation import check_query
from roost.service.allocations import list_project_usages, list_project_usages_by_type


def list_all(services: Services, request: Request) -> Response:
    """The usages of a project; from 1.38 on by consumer type."""
    values = check_query(request.query(), schemas.LIST.at(request.version))
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
    return with_cache_headers(json_response(body), request, now())


def target_project(request: Request) -> str | None:
    """The project in the query, which the policy needs before the query is checked."""
    return dict(request.query()).get("project_id")
