"""One method for each question; an answer is the JSON that the server sends, as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from roost.client.errors import NotOffered, QuestionRefused
from roost.client.placement.administration import Administration
from roost.client.placement.answers import reason_of, require_ok
from roost.client.transport import PlacementResponse

Json: TypeAlias = Mapping[str, Any]
OWN_PREFIX = "/roost/"
_OWN_CODES = "roost."
_PAGE_LIMIT = 10_000


class Questions(Administration):
    """Asks one server. A query is a query string of `GET /allocation_candidates`."""

    def candidates(self, query: str) -> dict[str, Any]:
        """The candidates, on any placement server."""
        return self._get("/allocation_candidates", query, {"allocation_requests": list})

    def ranked_candidates(
        self, query: str, order: str | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """The candidates in an order of Roost, for a query that may ask more than the API."""
        fields = {"allocation_requests": list}
        return self._get("/roost/candidates", ordered(query, order, seed), fields)

    def explain(
        self, query: str, provider: str | None = None, misses: int | None = None
    ) -> dict[str, Any]:
        """Why there are candidates or none, of all trees or of the tree of one provider."""
        own = {"provider": provider, "misses": misses}
        return self._get(
            "/roost/explain",
            _joined(query, own),
            {"feasible": bool, "groups": list, "trees": list, "misses": list, "hints": list},
        )

    def capacity(self, query: str, *, by_root: bool = False) -> dict[str, Any]:
        """How many consumers with this request fit; with the number of each root, all pages."""
        fields = {"fits": int, "exact": bool}
        if not by_root:
            return self._get("/roost/capacity", query, fields)
        return self._get_roots("/roost/capacity", _joined(query, {"by": "root"}), fields)

    def whatif(
        self, changes: Sequence[Mapping[str, Any]], ask: Sequence[Mapping[str, str]]
    ) -> dict[str, Any]:
        """Answers to questions before and after changes that the server does not make."""
        path = "/roost/whatif"
        body = {"changes": list(changes), "ask": list(ask)}
        return _content(path, self._ask("POST", path, body), {"answers": list})

    def fragmentation(self, queries: Sequence[str]) -> dict[str, Any]:
        """The free amounts, and those on trees where each query has a candidate."""
        return self._get("/roost/fragmentation", asks_of(queries), {"resource_classes": dict})

    def resilience(self, lose: int) -> dict[str, Any]:
        """The roots whose consumers would not fit on the remaining ones."""
        return self._get_roots("/roost/resilience", f"lose={lose}", {"survives": int})

    def _get_roots(self, path: str, query: str, fields: Mapping[str, type]) -> dict[str, Any]:
        """An answer with a list of roots: its first page, with the roots of all pages."""
        fields = {**fields, "roots": list}
        own: dict[str, Any] = {"page_limit": _PAGE_LIMIT}
        answer = self._get(path, _joined(query, own), fields)
        while marker := answer.get("next"):
            page = self._get(path, _joined(query, own | {"marker": marker}), fields)
            answer["roots"] += page["roots"]
            answer["next"] = page.get("next")
        return answer

    def _get(self, path: str, query: str, fields: Mapping[str, type]) -> dict[str, Any]:
        address = f"{path}?{query}" if query else path
        return _content(path, self._ask("GET", address), fields)

    def _ask(self, method: str, path: str, body: Any = None) -> PlacementResponse:
        # No question changes the server, so the transport may ask it twice.
        return self._send(method, path, body, str(self.version), repeatable=True)


def asks_of(queries: Iterable[str]) -> str:
    """The parameters of a question about several queries.

    >>> asks_of(["resources=VCPU:1"])
    'ask=resources%3DVCPU:1'
    """
    return urlencode([("ask", query) for query in queries], safe=":,!")


def ordered(query: str, order: str | None, seed: int | None) -> str:
    """A query for candidates in an order."""
    return _joined(query, {"order": order, "seed": seed})


def _joined(query: str, own: Mapping[str, Any]) -> str:
    """A query with the parameters of the route behind it."""
    given = urlencode({name: value for name, value in own.items() if value is not None})
    return "&".join(part for part in (query, given) if part)


def _content(path: str, answer: PlacementResponse, fields: Mapping[str, type]) -> dict[str, Any]:
    """The JSON of an answer; an error if the server refused, or does not know the question."""
    demand_answered(path, answer)
    for name, kind in fields.items():
        answer.field(name, kind)
    return dict(answer.json)


def demand_answered(path: str, answer: PlacementResponse) -> None:
    """Raise an error if the server refused a question, or does not know it."""
    code = answer.code or ""
    if answer.status == 404 and path.startswith(OWN_PREFIX) and not code.startswith(_OWN_CODES):
        raise NotOffered(f"The server does not offer {path}", path)
    if answer.status in (400, 404, 409):
        raise QuestionRefused(
            f"The server refused the question {path}",
            status=answer.status,
            detail=reason_of(answer),
            request_id=answer.request_id,
            code=answer.code,
        )
    require_ok(answer, QuestionRefused, f"The server did not answer {path}")
