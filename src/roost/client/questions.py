"""Questions to a server: candidates, which every server answers, and those under `/roost/`.

One method for each question; an answer is the JSON that the server sends, as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from roost.client.errors import NotOffered, QuestionRefused
from roost.client.placement.answers import reason_of, require_ok
from roost.client.placement.placement import Administration
from roost.client.shapes import AMOUNTS, NULL, JsonShape
from roost.client.transport import PlacementResponse

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


_REFERENCE: JsonShape = {"uuid": str, "name": str}
_STAGE: JsonShape = {"stage": str, "trees": int, "text?": (str, NULL)}
_LIMIT: JsonShape = {"resource_class?": (str, NULL), "text?": (str, NULL)}
_AT_MOST: JsonShape = {"at_most?": (int, NULL)}

CANDIDATES: JsonShape = {
    "allocation_requests": [
        {"allocations": {str: {"resources": AMOUNTS}}, "mappings?": {str: [str]}}
    ],
    "provider_summaries?": {
        str: {
            "resources?": {str: {"capacity": int, "used": int}},
            "root_provider_uuid?": str,
        }
    },
}
EXPLANATION: JsonShape = {
    "feasible": bool,
    "reason?": (NULL, {"stage?": str, "group?": (str, NULL), "text?": (str, NULL)}),
    "groups": [{"group": str, "funnel": [{**_STAGE, "providers": int}]}],
    "trees": [_STAGE],
    "misses": [{"root": _REFERENCE, "lacks": [{"text": str}]}],
    "hints": [{"text": str, "query": str}],
}
CAPACITY: JsonShape = {"fits": int, "exact": bool, "limited_by?": (NULL, _LIMIT), **_AT_MOST}
CAPACITY_OF_ROOTS: JsonShape = {
    **CAPACITY,
    "roots": [{"root": _REFERENCE, "fits": int, "at_most?": int}],
    "next?": (str, NULL),
}
FRAGMENTATION: JsonShape = {
    "resource_classes": {str: {"free": int, "usable": [int]}},
    "empty_roots?": (int, NULL),
}
TOTALS: JsonShape = {
    "totals": {str: {"used": int, "capacity": int, "free": int, "reserved": int, "providers": int}}
}
RESILIENCE: JsonShape = {
    "survives": int,
    "of?": int,
    "roots": [{"root": _REFERENCE, "text?": (str, NULL)}],
    "next?": (str, NULL),
}
_SIDES: JsonShape = {
    "capacity": CAPACITY,
    "explain": EXPLANATION,
    "candidates": CANDIDATES,
}


def whatif_shape(questions: list[str]) -> JsonShape:
    """The shape of an answer to a what-if that asks these questions, in their order."""
    sides: JsonShape = tuple(_SIDES[question] for question in dict.fromkeys(questions))
    return {
        "changes?": [{"text": str, "applied?": bool}],
        "answers": [{"before": sides, "after": sides}],
    }


Json: TypeAlias = Mapping[str, Any]
OWN_PREFIX = "/roost/"
_OWN_CODES = "roost."


class Questions(Administration):
    """Asks one server. A query is a query string of `GET /allocation_candidates`."""

    def candidates(self, query: str) -> dict[str, Any]:
        """The candidates, on any placement server."""
        return self._get(candidates_address(query), CANDIDATES)

    def ranked_candidates(
        self, query: str, order: str | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """The candidates in an order of Roost, for a query that may ask more than the API."""
        return self._get(ranked_candidates_address(query, order, seed), CANDIDATES)

    def explain(
        self, query: str, provider: str | None = None, misses: int | None = None
    ) -> dict[str, Any]:
        """Why there are candidates or none, of all trees or of the tree of one provider."""
        return self._get(explain_address(query, provider, misses), EXPLANATION)

    def capacity(self, query: str, *, by_root: bool = False) -> dict[str, Any]:
        """How many consumers with this request fit; with the number of each root, all pages."""
        address = capacity_address(query, by_root=by_root)
        if by_root:
            return self._get_roots(address, CAPACITY_OF_ROOTS)
        return self._get(address, CAPACITY)

    def whatif(
        self, changes: Sequence[Mapping[str, Any]], ask: Sequence[Mapping[str, str]]
    ) -> dict[str, Any]:
        """Answers to questions before and after changes that the server does not make."""
        path = "/roost/whatif"
        body = {"changes": list(changes), "ask": list(ask)}
        shape = whatif_shape([name for question in ask for name in question])
        return _content(path, self._ask("POST", path, body), shape)

    def fragmentation(self, queries: Sequence[str]) -> dict[str, Any]:
        """The free amounts, and those on trees where each query has a candidate."""
        address = fragmentation_address(queries)
        answer = self._ask("GET", address)
        content = _content(address, answer, FRAGMENTATION)
        classes = content["resource_classes"].values()
        if any(len(amounts["usable"]) != len(queries) for amounts in classes):
            raise answer.unreadable()
        return content

    def totals(self) -> dict[str, Any]:
        """What all providers have of each resource class."""
        # Totals are over all roots, whatever the page.
        found: dict[str, Any] = self._get("/roost/overview?page_limit=1", TOTALS)["totals"]
        return found

    def resilience(self, lose: int) -> dict[str, Any]:
        """The roots whose consumers would not fit on the remaining ones."""
        return self._get_roots(resilience_address(lose), RESILIENCE)

    def _get_roots(self, address: str, shape: JsonShape) -> dict[str, Any]:
        """An answer with a list of roots: its first page, with the roots of all pages."""
        answer = self._get(address, shape)
        while marker := answer.get("next"):
            page = self._get(with_parameters(address, {"marker": marker}), shape)
            answer["roots"] += page["roots"]
            # A page without roots is the last one, or the pages would have no end.
            answer["next"] = page.get("next") if page["roots"] else None
        return answer

    def _get(self, address: str, shape: JsonShape) -> dict[str, Any]:
        return _content(address, self._ask("GET", address), shape)

    def _ask(self, method: str, path: str, body: Any = None) -> PlacementResponse:
        # No question changes the server, so the transport may ask it twice.
        return self._send(method, path, body, str(self.version), repeatable=True)


def _content(address: str, answer: PlacementResponse, shape: JsonShape) -> dict[str, Any]:
    """The JSON of an answer; an error if the server refused, or does not know the question."""
    demand_answered(address.partition("?")[0], answer)
    return dict(answer.shaped(shape))


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
