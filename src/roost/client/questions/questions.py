"""One method for each question; an answer is the JSON that the server sends, as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from roost.client.errors import NotOffered, QuestionRefused
from roost.client.placement.administration import Administration
from roost.client.placement.answers import refusal, require_ok
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
        own = {"by": "root", "page_limit": _PAGE_LIMIT} if by_root else {}
        fields = {"fits": int, "exact": bool}
        answer = self._get("/roost/capacity", _joined(query, own), fields)
        while marker := answer.get("next"):
            page = self._get("/roost/capacity", _joined(query, own | {"marker": marker}), fields)
            roots = [*answer.get("roots", ()), *page.get("roots", ())]
            answer = {**answer, "roots": roots, "next": page.get("next")}
        return answer

    def whatif(
        self, changes: Sequence[Mapping[str, Any]], ask: Sequence[Mapping[str, str]]
    ) -> dict[str, Any]:
        """Answers to questions before and after changes that the server does not make."""
        path = "/roost/whatif"
        body = {"changes": list(changes), "ask": list(ask)}
        return _content(path, self._ask("POST", path, body), {"answers": list})

    def fragmentation(self, queries: Sequence[str]) -> dict[str, Any]:
        """The free amounts, and those on trees where each query has a candidate."""
        asks = urlencode([("ask", query) for query in queries])
        return self._get("/roost/fragmentation", asks, {"resource_classes": dict})

    def resilience(self, lose: int) -> dict[str, Any]:
        """The roots whose consumers would not fit on the remaining ones."""
        return self._get("/roost/resilience", f"lose={lose}", {"survives": int, "roots": list})

    def _get(self, path: str, query: str, fields: Mapping[str, type]) -> dict[str, Any]:
        address = f"{path}?{query}" if query else path
        return _content(path, self._ask("GET", address), fields)

    def _ask(self, method: str, path: str, body: Any = None) -> PlacementResponse:
        # No question changes the server, so the transport may ask it twice.
        return self._send(method, path, body, str(self.version), repeatable=True)


def _joined(query: str, own: Mapping[str, Any]) -> str:
    """A query with the parameters of the route behind it."""
    given = urlencode({name: value for name, value in own.items() if value is not None})
    return "&".join(part for part in (query, given) if part)


def _content(path: str, answer: PlacementResponse, fields: Mapping[str, type]) -> dict[str, Any]:
    """The JSON of an answer; an error if the server refused, or does not know the question."""
    code = answer.code or ""
    if answer.status == 404 and path.startswith(OWN_PREFIX) and not code.startswith(_OWN_CODES):
        raise NotOffered(f"The server does not offer {path}", path)
    if answer.status in (400, 404, 409):
        raise refusal(QuestionRefused, f"The server refused the question {path}", answer)
    require_ok(answer, QuestionRefused, f"The server did not answer {path}")
    for name, kind in fields.items():
        answer.field(name, kind)
    return dict(answer.json)
