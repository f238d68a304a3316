"""Questions to a server: candidates, which every server answers, and those under `/roost/`.

One function makes each question; an answer is the JSON that the server sends, as it is. The
changes that only `/roost/` offers are here too: each has a question for what it would change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from roost.client.errors import (
    ChangeFailed,
    CursorExpired,
    NotOffered,
    PlacementError,
    QuestionRefused,
    UnreadableAnswer,
)
from roost.client.placement.answers import reason_of, require_ok
from roost.client.placement.placement import Administration
from roost.client.shapes import AMOUNTS, INVENTORY, NULL, NUMBER, JsonShape
from roost.client.transport import PlacementResponse

Json: TypeAlias = Mapping[str, Any]
OWN_PREFIX = "/roost/"
_OWN_CODES = "roost."
_CURSOR_EXPIRED = "roost.cursor_expired"
_PAGE_LIMIT = 10_000
_TREES_OF_PAGE = 1000

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
TOTALS: JsonShape = {
    "totals": {str: {"used": int, "capacity": int, "free": int, "reserved": int, "providers": int}}
}
# The pages of it are not asked for.
ROOTS: JsonShape = {"columns": [str], "rows": [list]}
RESILIENCE: JsonShape = {
    "survives": int,
    "of?": int,
    "roots": [{"root": _REFERENCE, "text?": (str, NULL)}],
    "next?": (str, NULL),
}
_WHOLE_PROVIDER: JsonShape = {
    "name": str,
    "uuid": str,
    "parent?": str,
    "generation": int,
    "traits": [str],
    "aggregates": [str],
    "inventories": {str: INVENTORY},
    "usages": AMOUNTS,
}
TREE: JsonShape = {"providers": [_WHOLE_PROVIDER], "sharing_providers": [_WHOLE_PROVIDER]}
TREES: JsonShape = {"trees": [TREE], "next?": (str, NULL)}
CONSUMERS: JsonShape = {
    "consumers": [
        {
            "consumer": str,
            "consumer_type": (str, NULL),
            "project_id": str,
            "user_id": str,
            "generation": int,
            "created_at": (str, NULL),
            "size": NUMBER,
            "allocations?": [{"provider": _REFERENCE, "resources": AMOUNTS}],
        }
    ],
    "next?": (str, NULL),
}
AUDIT: JsonShape = {
    "findings": [
        {
            "kind": str,
            "provider": (_REFERENCE, NULL),
            "consumer": (str, NULL),
            "text": str,
            "mend": ({"method": str, "path": str, "body?": object}, NULL),
            "deleted": bool,
        }
    ],
    "counts": AMOUNTS,
    "consumers": int,
    "problem?": (str, NULL),
    "next?": (str, NULL),
}
_PERHAPS_NAMED: JsonShape = ({"uuid": str, "name": (str, NULL)}, NULL)
CHANGES: JsonShape = {
    "changes": [
        {
            "at": str,
            "kind": str,
            "provider": _PERHAPS_NAMED,
            "root": _PERHAPS_NAMED,
            "resource_classes": [str],
            "request_id": (str, NULL),
            "user_id": (str, NULL),
            "project_id": (str, NULL),
        }
    ],
    "next": str,
    "more": bool,
}
_CHANGED: JsonShape = {"provider": _REFERENCE, "was": _REFERENCE}
MERGED: JsonShape = {
    "provider": _REFERENCE,
    "merged": _REFERENCE,
    "consumers": int,
    "resource_classes": [str],
    "traits": [str],
    "aggregates": [str],
    "children": [_REFERENCE],
}
_SIDES: JsonShape = {
    "capacity": CAPACITY,
    "explain": EXPLANATION,
    "candidates": CANDIDATES,
}


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request that changes nothing, and the shape of its answer."""

    path: str
    query: str
    shape: JsonShape
    body: Any = None
    # The member of the answer that has pages.
    rows: str = "roots"

    @property
    def address(self) -> str:
        """The path with the query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def with_parameters(self, **own: Any) -> ServerQuestion:
        """The question with further parameters, without those that are `None`."""
        given = urlencode({name: value for name, value in own.items() if value is not None})
        return replace(self, query="&".join(part for part in (self.query, given) if part))


@dataclass(frozen=True, slots=True)
class ServerChange:
    """A request under `/roost/` that changes something, and the shape of its answer."""

    path: str
    body: Json
    shape: JsonShape
    query: str = ""
    rows: str = "roots"

    @property
    def rehearsal(self) -> ServerQuestion:
        """The question what the change would do."""
        return self._asking({**self.body, "dry_run": True})

    def rest(self, marker: str, **body: Any) -> ServerQuestion:
        """The question for the further pages of the answer, with another value in the body."""
        return self._asking({**self.body, **body}).with_parameters(marker=marker)

    def _asking(self, body: Json) -> ServerQuestion:
        return ServerQuestion(self.path, self.query, self.shape, body, self.rows)


def ask_candidates(query: str) -> ServerQuestion:
    """The candidates, on any placement server."""
    return ServerQuestion("/allocation_candidates", query, CANDIDATES)


def ask_ranked_candidates(query: str, order: str | None, seed: int | None) -> ServerQuestion:
    """The candidates in an order of Roost, for a query that may ask more than the API.

    >>> ask_ranked_candidates("resources=VCPU:1", "pack", None).address
    '/roost/candidates?resources=VCPU:1&order=pack'
    """
    return ServerQuestion("/roost/candidates", query, CANDIDATES).with_parameters(
        order=order, seed=seed
    )


def ask_why(query: str, provider: str | None, misses: int | None) -> ServerQuestion:
    """Why there are candidates or none, of all trees or of the tree of one provider."""
    question = ServerQuestion("/roost/explain", query, EXPLANATION)
    return question.with_parameters(provider=provider, misses=misses)


def ask_capacity(query: str, *, by_root: bool) -> ServerQuestion:
    """How many consumers with this request fit; of all trees, or of each root too."""
    if not by_root:
        return ServerQuestion("/roost/capacity", query, CAPACITY)
    question = ServerQuestion("/roost/capacity", query, CAPACITY_OF_ROOTS)
    return question.with_parameters(by="root", page_limit=_PAGE_LIMIT)


def ask_fragmentation(queries: Sequence[str]) -> ServerQuestion:
    """The free amounts, and those on trees where each query has a candidate.

    >>> ask_fragmentation(["resources=VCPU:1"]).address
    '/roost/fragmentation?ask=resources%3DVCPU:1'
    """
    asks = urlencode([("ask", query) for query in queries], safe=":,!")
    shape: JsonShape = {
        "resource_classes": {str: {"free": int, "usable": [int, len(queries)]}},
        "empty_roots?": (int, NULL),
    }
    return ServerQuestion("/roost/fragmentation", asks, shape)


def ask_totals() -> ServerQuestion:
    """What all providers have of each resource class."""
    # Totals are over all roots, whatever the page.
    return ServerQuestion("/roost/overview", "page_limit=1", TOTALS)


def ask_roots(name: str, at_most: int) -> ServerQuestion:
    """Roots by name, in which `*` stands for any characters; `uuid` and `name` are columns.

    >>> ask_roots("compute-*", 100).address
    '/roost/overview?name=compute-%2A&page_limit=100'
    """
    question = ServerQuestion("/roost/overview", "", ROOTS, rows="rows")
    return question.with_parameters(name=name, page_limit=at_most)


def ask_resilience(lose: int) -> ServerQuestion:
    """The roots whose consumers would not fit on the remaining ones."""
    question = ServerQuestion("/roost/resilience", f"lose={lose}", RESILIENCE)
    return question.with_parameters(page_limit=_PAGE_LIMIT)


def ask_whatif(
    changes: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, str]]
) -> ServerQuestion:
    """Answers to questions before and after changes that the server does not make."""
    sides: JsonShape = tuple(_SIDES[name] for question in asked for name in question)
    shape: JsonShape = {
        "changes?": [{"text": str, "applied?": bool}],
        "answers": [{"before": sides, "after": sides}],
    }
    body = {"changes": list(changes), "ask": list(asked)}
    return ServerQuestion("/roost/whatif", "", shape, body)


def ask_trees() -> ServerQuestion:
    """All trees, whole."""
    return ServerQuestion("/roost/trees", f"page_limit={_TREES_OF_PAGE}", TREES, rows="trees")


def ask_tree(provider: str) -> ServerQuestion:
    """The whole tree of a provider.

    >>> ask_tree("rack 1").address
    '/roost/trees/rack%201'
    """
    return ServerQuestion(f"/roost/trees/{quote(provider, safe='')}", "", TREE)


def ask_consumers(at_most: int | None, **conditions: str | None) -> ServerQuestion:
    """The consumers that match the conditions; `at_most` is how many the caller needs.

    >>> ask_consumers(5, type="INSTANCE", user=None).address
    '/roost/consumers?type=INSTANCE&page_limit=5'
    """
    question = ServerQuestion("/roost/consumers", "", CONSUMERS, rows="consumers")
    length = min(at_most or _PAGE_LIMIT, _PAGE_LIMIT)
    return question.with_parameters(**conditions, page_limit=length)


def ask_changes(since: str | None, wait: int | None = None, **conditions: Any) -> ServerQuestion:
    """One page of what was written since a cursor; `wait` is for how many seconds.

    >>> ask_changes("eNo", 30, kind="usage").address
    '/roost/changes?since=eNo&wait=30&kind=usage'
    """
    question = ServerQuestion("/roost/changes", "", CHANGES, rows="changes")
    return question.with_parameters(since=since, wait=wait, **conditions)


def audit(body: Json) -> ServerChange:
    """What is wrong with the cloud; with `delete` in the body, orphans are deleted.

    >>> audit({}).rehearsal.address
    '/roost/audit?page_limit=10000'
    """
    return ServerChange("/roost/audit", body, AUDIT, f"page_limit={_PAGE_LIMIT}", "findings")


def adopt(provider: str, uuid: str) -> ServerChange:
    """Give a provider another uuid."""
    return _of_provider(provider, "adopt", {"uuid": uuid}, _CHANGED)


def rename(provider: str, name: str, *, descendants: bool) -> ServerChange:
    """Give a provider another name, and those below it whose names begin with the old one."""
    body = {"name": name, "descendants": descendants}
    return _of_provider(provider, "rename", body, {"renamed": [_CHANGED]})


def merge(provider: str, into: str, *, force: bool) -> ServerChange:
    """Let one provider take over all that another one has."""
    return _of_provider(provider, "merge", {"into": into, "force": force}, MERGED)


def _of_provider(provider: str, verb: str, body: Json, shape: JsonShape) -> ServerChange:
    return ServerChange(f"/roost/providers/{quote(provider, safe='')}/{verb}", body, shape)


def next_changes(server: Questions, question: ServerQuestion, since: str | None) -> dict[str, Any]:
    """A page of changes. One that leads nowhere would be asked for again and again."""
    page = server.answer(question)
    if page["more"] and page["next"] == since:
        raise UnreadableAnswer("The server has more changes, and no other cursor for them")
    return page


class Questions(Administration):
    """Asks one server. A query is a query string of `GET /allocation_candidates`."""

    def answer(self, question: ServerQuestion) -> dict[str, Any]:
        """The answer to a question; of an answer with pages, the rows of all pages."""
        pages = self._pages(question)
        answer = next(pages)
        for page in pages:
            answer[question.rows] += page[question.rows]
        return answer

    def rows(self, question: ServerQuestion) -> Iterator[Json]:
        """The rows of all pages; a page is asked for when the caller takes its first row."""
        for page in self._pages(question):
            yield from page[question.rows]

    def _pages(self, question: ServerQuestion) -> Iterator[dict[str, Any]]:
        page = self._page(question)
        yield page
        # A page without rows is the last one, or the pages would have no end.
        while "next?" in question.shape and page[question.rows] and (marker := page.get("next")):
            page = self._page(question.with_parameters(marker=marker))
            yield page

    def make(self, change: ServerChange) -> dict[str, Any]:
        """Make a change; the first page of what the server says about it.

        A second copy of the request could meet what the first one did, so it is sent once.
        """
        address = f"{change.path}?{change.query}" if change.query else change.path
        answer = self._send("POST", address, change.body, str(self.version))
        demand_answered(change.path, answer, ChangeFailed, "change")
        return dict(answer.shaped(change.shape))

    def _page(self, question: ServerQuestion) -> dict[str, Any]:
        method = "GET" if question.body is None else "POST"
        # No question changes the server, so the transport may ask it twice.
        answer = self._send(
            method, question.address, question.body, str(self.version), repeatable=True
        )
        demand_answered(question.path, answer)
        return dict(answer.shaped(question.shape))


def demand_answered(
    path: str,
    answer: PlacementResponse,
    failure: type[PlacementError] = QuestionRefused,
    noun: str = "question",
) -> None:
    """Raise an error if the server refused a question or change, or does not know it."""
    # The body of an answer is read for its code only if it may be an error: it may be large.
    code = "" if answer.ok else answer.code or ""
    if answer.status == 410 and code == _CURSOR_EXPIRED:
        raise CursorExpired(
            "The cursor has expired",
            status=answer.status,
            detail=reason_of(answer),
            request_id=answer.request_id,
            code=code,
        )
    if answer.status == 404 and path.startswith(OWN_PREFIX) and not code.startswith(_OWN_CODES):
        raise NotOffered(f"The server does not offer {path}", path)
    if answer.status in (400, 404, 409):
        raise failure(
            f"The server refused the {noun} {path}",
            status=answer.status,
            detail=reason_of(answer),
            request_id=answer.request_id,
            code=answer.code,
        )
    require_ok(answer, failure, f"The server did not answer {path}")
