"""A server with routes under `/roost/`, which answers each question as a test tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.stubs.placement_stub import PlacementStub, Received, Reply

HOST = {"uuid": "c0ffee00-0000-0000-0000-000000000001", "name": "compute-1"}
NUMA = {"uuid": "c0ffee00-0000-0000-0000-000000000002", "name": "compute-1_numa0"}
NOT_FOUND = Reply(404, body={"errors": [{"status": 404, "detail": "The resource was not found."}]})


def stage(name: str, trees: int, providers: int | None = None, text: str = "") -> dict[str, Any]:
    counted = {} if providers is None else {"providers": providers}
    return {"stage": name, "trees": trees, "text": text or f"after {name}", **counted}


def explanation(*, feasible: bool = False) -> dict[str, Any]:
    """An explanation: of 600 trees, none has room for 64 PCPU."""
    left = 3 if feasible else 0
    reason = {
        "stage": "room",
        "group": "_cpu",
        "resource_class": "PCPU",
        "text": "No provider has 64 PCPU free.",
    }
    lack = {
        "group": "_cpu",
        "provider": NUMA,
        "stage": "room",
        "resource_class": "PCPU",
        "wanted": 64,
        "free": 28,
        "text": "compute-1_numa0 has 28 PCPU free, and 64 are wanted.",
    }
    return {
        "feasible": feasible,
        "reason": None if feasible else reason,
        "groups": [
            {
                "group": "",
                "funnel": [stage(name, 600, 600) for name in ("class", "unit", "room", "traits")],
            },
            {
                "group": "_cpu",
                "funnel": [
                    stage("class", 600, 1200),
                    stage("room", left, left, "has 64 PCPU free"),
                ],
            },
        ],
        "trees": [stage("root", 600), stage("groups", left), stage("together", left)],
        "misses": [] if feasible else [{"root": HOST, "lacks": [lack]}],
        "hints": []
        if feasible
        else [{"text": "28 PCPU would fit.", "query": "resources_cpu=PCPU:28&limit=1"}],
    }


def capacity(fits: int = 1234, at_most: int | None = None) -> dict[str, Any]:
    exact = at_most is None
    return {
        "fits": fits,
        "exact": exact,
        "method": "counted",
        **({} if exact else {"at_most": at_most}),
        "limited_by": {"resource_class": "PCPU", "text": "PCPU runs out first."},
        "roots": [],
        "next": None,
    }


class QuestionStub(PlacementStub):
    """Knows one host, a few names, and the answers that a test gives it by path."""

    def __init__(self, answers: dict[str, Any], max_version: str = "1.39") -> None:
        super().__init__(otherwise=self._answer)
        self._answers = answers
        self._max_version = max_version

    @property
    def questions(self) -> list[Received]:
        """The requests but those for versions and names."""
        return [request for request in self.received if self._path(request) in self._answers]

    @property
    def queries(self) -> list[dict[str, str]]:
        """The parameters of each question."""
        return [dict(parse_qsl(urlsplit(request.path).query)) for request in self.questions]

    def _answer(self, request: Received) -> Reply:
        path = self._path(request)
        if path in self._answers:
            answer = self._answers[path]
            return answer if isinstance(answer, Reply) else Reply(body=answer)
        known: dict[str, Any] = {
            "/": {"versions": [{"max_version": self._max_version}]},
            "/resource_classes": {"resource_classes": [{"name": "VCPU"}, {"name": "PCPU"}]},
            "/traits": {"traits": ["HW_CPU_X86_AVX2", "CUSTOM_GOLD"]},
            "/resource_providers": {"resource_providers": self._providers(request)},
        }
        return Reply(body=known[path]) if path in known else NOT_FOUND

    @staticmethod
    def _path(request: Received) -> str:
        return urlsplit(request.path).path

    @staticmethod
    def _providers(request: Received) -> list[dict[str, Any]]:
        named = dict(parse_qsl(urlsplit(request.path).query)).get("name")
        return [
            {
                **provider,
                "generation": 0,
                "parent_provider_uuid": None if provider is HOST else HOST["uuid"],
                "root_provider_uuid": HOST["uuid"],
            }
            for provider in (HOST, NUMA)
            if named in (None, provider["name"])
        ]


# Starts a server with these answers by path.
Serving = Callable[..., QuestionStub]
