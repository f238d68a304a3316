"""Transports, which send requests to a placement server and return its answers."""

from roost.client.transport.messages import (
    PlacementRequest,
    PlacementResponse,
    RequestSender,
    ServerAddress,
    Transport,
    address_of,
)

__all__ = [
    "PlacementRequest",
    "PlacementResponse",
    "RequestSender",
    "ServerAddress",
    "Transport",
    "address_of",
]
