"""Answers that no placement server sends are errors of the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roost.client.errors import PlacementError, UnreadableAnswer
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementRequest, PlacementResponse

# Fixed: it is part of the names of tests, which all processes of a run must agree on.
HOST = "5f1de7e0-0000-4000-8000-000000000405"
PROVIDER = {
    "uuid": HOST,
    "name": "host",
    "generation": 1,
    "parent_provider_uuid": None,
    "root_provider_uuid": HOST,
}


class OddServer:
    """Answers with the given bodies, by the end of the path."""

    def __init__(self, **bodies: Any) -> None:
        self._bodies = {
            "resource_providers": {"resource_providers": [PROVIDER]},
            "inventories": {"resource_provider_generation": 1, "inventories": {}},
            "aggregates": {"resource_provider_generation": 1, "aggregates": []},
            "traits": {"resource_provider_generation": 1, "traits": []},
        } | bodies

    def send(self, request: PlacementRequest) -> PlacementResponse:
        name = request.path.partition("?")[0].rsplit("/", 1)[-1]
        body = self._bodies[name]
        return PlacementResponse(
            200, {}, body if isinstance(body, bytes) else json.dumps(body).encode()
        )

    def close(self) -> None:
        """The server has no connections."""


def test_the_server_without_odd_bodies_is_understood() -> None:
    assert Reporter(OddServer()).fetch(HOST).data(HOST).name == "host"


@pytest.mark.parametrize(
    "odd",
    [
        {"resource_providers": b"<html>"},
        {"resource_providers": b"[" * 100_000},
        {"resource_providers": []},
        {"resource_providers": {"resource_providers": 5}},
        {"resource_providers": {"resource_providers": [5]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"uuid": 5}]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"generation": None}]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"parent_provider_uuid": HOST}]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"parent_provider_uuid": "x"}]}},
        {"inventories": {"resource_provider_generation": 1, "inventories": [1]}},
        {"inventories": {"resource_provider_generation": 1, "inventories": {"VCPU": 1}}},
        {"inventories": {"resource_provider_generation": "1", "inventories": {}}},
        {"aggregates": {"resource_provider_generation": 1, "aggregates": [1, []]}},
        {"aggregates": {"resource_provider_generation": 1, "aggregates": 5}},
        {"traits": {"resource_provider_generation": 1, "traits": [None]}},
        {"traits": {}},
    ],
    ids=str,
)
def test_an_odd_answer_is_an_unreadable_answer(odd: dict[str, Any]) -> None:
    with pytest.raises(UnreadableAnswer):
        Reporter(OddServer(**odd)).fetch(HOST)


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "see --token, ROOST_TOKEN"), (403, "the token lacks a role for it: use another one")],
)
def test_an_unauthorized_client_gets_advice_about_its_token(status: int, advice: str) -> None:
    class RefusingServer(OddServer):
        def send(self, request: PlacementRequest) -> PlacementResponse:
            return PlacementResponse(status)

    with pytest.raises(PlacementError, match=advice):
        Reporter(RefusingServer()).fetch(HOST)
