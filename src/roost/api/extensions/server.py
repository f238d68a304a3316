"""`GET /roost/server`: which server this is."""

from __future__ import annotations

from roost.api.extensions.parameters import refuse_rest, split_parameters
from roost.api.http.json_schemas import UUID_OR_NULL, AnswerSchema, members
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import Route, Success, routes_of
from roost.api.services import Services
from roost.store.meta import read_identity

_SERVER = AnswerSchema.of(
    "Server",
    "Which server this is. `identity` is null until an older database has got one.",
    members({"identity": UUID_OR_NULL}),
)


@Route(
    "GET",
    "/roost/server",
    rule="roost:server:show",
    summary="Show the identity of the server",
    successes={200: Success("The identity.", _SERVER)},
)
def show_server(services: Services, request: Request) -> Response:
    """A uuid that tells the database of the server from all others.

    All servers of a database have the same identity. A restored backup keeps it, and so does a
    copy, unless `roost db identity --renew` gives the copy another one.
    """
    refuse_rest(split_parameters(request, ()), ())
    return json_response({"identity": services.read(read_identity)})


ROUTES = routes_of("Operating", show_server)
