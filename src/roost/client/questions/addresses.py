"""The path and query of each question, as it is sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

_PAGE_LIMIT = 10_000
_NO_PARAMETERS: Mapping[str, Any] = {}


def candidates_address(query: str) -> str:
    """The question for candidates that any placement server answers."""
    return _address("/allocation_candidates", query)


def ranked_candidates_address(query: str, order: str | None, seed: int | None) -> str:
    """The question for candidates in an order.

    >>> ranked_candidates_address("resources=VCPU:1", "pack", None)
    '/roost/candidates?resources=VCPU:1&order=pack'
    """
    return _address("/roost/candidates", query, {"order": order, "seed": seed})


def explain_address(query: str, provider: str | None, misses: int | None) -> str:
    """The question why there are candidates or none."""
    return _address("/roost/explain", query, {"provider": provider, "misses": misses})


def capacity_address(query: str, *, by_root: bool) -> str:
    """The question how many fit; of the roots, the first page."""
    own = {"by": "root", "page_limit": _PAGE_LIMIT} if by_root else {}
    return _address("/roost/capacity", query, own)


def fragmentation_address(queries: Iterable[str]) -> str:
    """The question about free and usable amounts.

    >>> fragmentation_address(["resources=VCPU:1"])
    '/roost/fragmentation?ask=resources%3DVCPU:1'
    """
    asks = urlencode([("ask", query) for query in queries], safe=":,!")
    return _address("/roost/fragmentation", asks)


def resilience_address(lose: int) -> str:
    """The question which roots may not be lost; of the roots, the first page."""
    return _address("/roost/resilience", f"lose={lose}", {"page_limit": _PAGE_LIMIT})


def _address(path: str, query: str, own: Mapping[str, Any] = _NO_PARAMETERS) -> str:
    """A path with a query, and the parameters of the route behind it."""
    return with_parameters(f"{path}?{query}" if query else path, own)


def with_parameters(address: str, own: Mapping[str, Any]) -> str:
    """An address with further parameters."""
    given = urlencode({name: value for name, value in own.items() if value is not None})
    if not given:
        return address
    return f"{address}{'&' if '?' in address else '?'}{given}"
