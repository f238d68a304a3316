"""Transports, which send requests to a placement server and return its answers."""

from roost.client.transport.messages import (
    PlacementRequest,
    PlacementResponse,
    RequestSender,
    Transport,
)

__all__ = ["PlacementRequest", "PlacementResponse", "RequestSender", "Transport"]
