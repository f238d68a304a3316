"""A transport to the application in this process."""

from __future__ import annotations

from roost.client.transport import PlacementRequest, PlacementResponse
from support.api_client import ApiClient


class ApplicationTransport:
    """Sends requests to the application in this process."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def send(self, request: PlacementRequest) -> PlacementResponse:
        answer = self._api.at(request.version).request(request.method, request.path, request.body)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return PlacementResponse(answer.status, headers, answer.body)

    def close(self) -> None:
        pass
