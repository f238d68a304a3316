"""One method for each question; an answer is the JSON that the server sends, as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from roost.client.errors import NotOffered, QuestionRefused
from roost.client.placement.administration import Administration
from roost.client.placement.answers import reason_of, require_ok
from roost.client.questions.addresses import (
    candidates_address,
    capacity_address,
    explain_address,
    fragmentation_address,
    ranked_candidates_address,
    resilience_address,
    with_parameters,
)
from roost.client.questions.answer_shapes import (
    CANDIDATES,
    CAPACITY,
    CAPACITY_OF_ROOTS,
    EXPLANATION,
    FRAGMENTATION,
    RESILIENCE,
    whatif_shape,
)
from roost.client.shapes import JsonShape
from roost.client.transport import PlacementResponse

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
