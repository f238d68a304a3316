"""What a refused claim says: the sentence of the server, and what is short. Pure."""

from __future__ import annotations

import re

from roost.client.errors import ClaimRefused
from roost.client.placement.answers import is_concurrent_update, reason_of
from roost.client.transport import PlacementResponse

_SHORT = re.compile(r"'([A-Z0-9_, ]+)' on resource provider '([^']+)'")


def claim_refused(consumer_uuid: str, answer: PlacementResponse) -> ClaimRefused:
    """The error for a claim that the server refused."""
    message = f"The claim for consumer {consumer_uuid} was not made"
    if is_concurrent_update(answer):
        message += ", because other writers changed its providers at each try; claim again"
    short = _SHORT.search(answer.detail)
    error = ClaimRefused(
        message,
        status=answer.status,
        detail=reason_of(answer),
        request_id=answer.request_id,
        provider_uuid=short[2] if short else None,
        code=answer.code,
    )
    error.resource_class = short[1] if short else None
    return error
