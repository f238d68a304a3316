"""`GET /roost/server`: which server this is."""

from __future__ import annotations

from roost.api.extensions.parameters import refuse_rest, split_parameters
from roost.api.requests import Request
from roost.api.responses import Response, json_response
from roost.api.services import Services
from roost.service.server_identity import show_identity


def show(services: Services, request: Request) -> Response:
    """The identity of the server: the same on all servers of one database."""
    refuse_rest(split_parameters(request, ()), ())
    return json_response({"identity": services.read(show_identity)})
