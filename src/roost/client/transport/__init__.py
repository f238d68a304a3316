"""What carries requests to a placement server, and answers back."""

from roost.client.transport.messages import Request, Response, Transport

__all__ = ["Request", "Response", "Transport"]
